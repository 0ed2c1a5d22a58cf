// SPDX-License-Identifier: Apache-2.0
//
// tonic: the null fan-out's mid-tier and leaf, on tokio's multi-thread runtime with two workers (--stack tonic-multi)
// or its current-thread runtime (--stack tonic-current). Takes the flags with which peers starts every server:
// --stack NAME --role leaf|mid --leaf ADDRESS...
use std::error::Error;

use futures_util::future::try_join_all;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

mod fanout {
    tonic::include_proto!("curtail.bench");
}
use fanout::leaf_client::LeafClient;
use fanout::leaf_server::{Leaf, LeafServer};
use fanout::mid_server::{Mid, MidServer};
use fanout::Blob;

const WORKERS: usize = 2;

struct LeafService;

#[tonic::async_trait]
impl Leaf for LeafService {
    async fn null(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        Ok(Response::new(request.into_inner()))
    }
}

struct MidService {
    leaves: Vec<LeafClient<Channel>>,
}

#[tonic::async_trait]
impl Mid for MidService {
    // All calls are begun before the first reply is awaited.
    async fn query(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        let blob = request.into_inner();
        let calls = self.leaves.iter().map(|leaf| {
            let mut leaf = leaf.clone();
            let blob = blob.clone();
            async move { leaf.null(blob).await }
        });
        let mut replies = try_join_all(calls).await?;
        Ok(replies.swap_remove(0))
    }
}

#[derive(Default)]
struct Options {
    stack: String,
    role: String,
    leaves: Vec<String>,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        stack: "tonic-multi".into(),
        ..Options::default()
    };
    while let Some(flag) = words.next() {
        let value = words.next().ok_or(format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--stack" => options.stack = value,
            "--role" => options.role = value,
            "--leaf" => options.leaves.push(value),
            _ => return Err(format!("there is no flag {flag}").into()),
        }
    }
    if options.role != "leaf" && (options.role != "mid" || options.leaves.is_empty()) {
        return Err("needs --role leaf, or --role mid and a --leaf ADDRESS for each leaf".into());
    }
    Ok(options)
}

async fn serve(options: Options) -> Result<(), Box<dyn Error>> {
    let mut leaves = Vec::new();
    for address in &options.leaves {
        let channel = Endpoint::from_shared(format!("http://{address}"))?
            .tcp_nodelay(true)
            .connect()
            .await?;
        leaves.push(LeafClient::new(channel));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("{address}");
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let mut server = Server::builder();
    let router = match options.role.as_str() {
        "leaf" => server.add_service(LeafServer::new(LeafService)),
        _ => server.add_service(MidServer::new(MidService { leaves })),
    };
    Ok(router.serve_with_incoming(incoming).await?)
}

fn run() -> Result<(), Box<dyn Error>> {
    let options = parse(std::env::args().skip(1))?;
    let runtime = match options.stack.as_str() {
        "tonic-multi" => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .enable_io()
            .enable_time()
            .build()?,
        "tonic-current" => tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?,
        other => {
            return Err(format!(
                "no stack is called {other}; there are tonic-multi and tonic-current"
            )
            .into())
        }
    };
    runtime.block_on(serve(options))
}

fn main() {
    if let Err(error) = run() {
        eprintln!("tonic: {error}");
        std::process::exit(1);
    }
}
