// SPDX-License-Identifier: Apache-2.0
//
// Generates the messages and services of fanout.proto; payloads are Bytes, which replies share with requests.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    tonic_prost_build::configure()
        .bytes(".")
        .compile_protos(&["../fanout.proto"], &[".."])?;
    Ok(())
}
