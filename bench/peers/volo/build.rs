// SPDX-License-Identifier: Apache-2.0
//
// Generates the messages and services of fanout.proto. volo-build has a parser of its own, so there is no protoc.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=../fanout.proto");
    volo_build::Builder::protobuf()
        .add_service("../fanout.proto")
        .include_dirs(vec!["..".into()])
        .write()?;
    Ok(())
}
