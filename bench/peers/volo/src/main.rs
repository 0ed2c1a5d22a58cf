// SPDX-License-Identifier: Apache-2.0
//
// volo: the null fan-out's mid-tier and leaf on volo-grpc, on tokio's multi-thread runtime with two workers (--stack
// volo-multi) or its current-thread runtime (--stack volo-current). Takes the flags with which peers starts every
// server: --stack NAME --role leaf|mid --leaf ADDRESS...
use std::error::Error;
use std::net::SocketAddr;

use futures_util::future::try_join_all;
use tokio::net::TcpListener;
use volo::net::incoming::DefaultIncoming;
use volo_grpc::server::{Server, ServiceBuilder};
use volo_grpc::{Request, Response, Status};

// The module volo_gen.
include!(concat!(env!("OUT_DIR"), "/volo_gen.rs"));
use volo_gen::curtail::bench::{
    Blob, Leaf, LeafClient, LeafClientBuilder, LeafServer, Mid, MidServer,
};

const WORKERS: usize = 2;

struct LeafService;

impl Leaf for LeafService {
    async fn null(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        Ok(Response::new(request.into_inner()))
    }
}

struct MidService {
    leaves: Vec<LeafClient>,
}

impl Mid for MidService {
    // Starts all calls before it waits for the first reply.
    async fn query(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        let blob = request.into_inner();
        let calls = self.leaves.iter().map(|leaf| leaf.null(blob.clone()));
        let mut replies = try_join_all(calls).await?;
        Ok(replies.swap_remove(0))
    }
}

#[derive(Default)]
struct Options {
    stack: String,
    role: String,
    leaves: Vec<SocketAddr>,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        stack: "volo-multi".into(),
        ..Options::default()
    };
    while let Some(flag) = words.next() {
        let value = words.next().ok_or(format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--stack" => options.stack = value,
            "--role" => options.role = value,
            "--leaf" => options.leaves.push(value.parse()?),
            _ => return Err(format!("there is no flag {flag}").into()),
        }
    }
    if options.role != "leaf" && (options.role != "mid" || options.leaves.is_empty()) {
        return Err("needs --role leaf, or --role mid and a --leaf ADDRESS for each leaf".into());
    }
    Ok(options)
}

async fn serve(options: Options) -> Result<(), Box<dyn Error>> {
    let server = if options.role == "leaf" {
        Server::new().add_service(ServiceBuilder::new(LeafServer::new(LeafService)).build())
    } else {
        // A client opens its one connection with its first call. Volo sets TCP_NODELAY at both ends.
        let client = |leaf| LeafClientBuilder::new("leaf").address(leaf).build();
        let leaves = options.leaves.into_iter().map(client).collect();
        Server::new()
            .add_service(ServiceBuilder::new(MidServer::new(MidService { leaves })).build())
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    server
        .run(DefaultIncoming::from(listener))
        .await
        .map_err(|error| error.to_string().into())
}

fn run() -> Result<(), Box<dyn Error>> {
    let options = parse(std::env::args().skip(1))?;
    let mut builder = match options.stack.as_str() {
        "volo-multi" => tokio::runtime::Builder::new_multi_thread(),
        "volo-current" => tokio::runtime::Builder::new_current_thread(),
        other => {
            return Err(format!(
                "no stack is called {other}; there are volo-multi and volo-current"
            )
            .into())
        }
    };
    builder
        .worker_threads(WORKERS)
        .enable_io()
        .enable_time()
        .build()?
        .block_on(serve(options))
}

fn main() {
    if let Err(error) = run() {
        eprintln!("volo: {error}");
        std::process::exit(1);
    }
}
