// SPDX-License-Identifier: Apache-2.0
package curtail.probe;

import curtail.host.Host;
import curtail.probe.ProbeOuterClass.Failure;
import curtail.probe.ProbeOuterClass.Patience;
import curtail.probe.ProbeOuterClass.Payload;
import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The service of probe.proto. */
public final class Main extends ProbeGrpc.ProbeImplBase {
  private static final Metadata.Key<String> TRAILER = Metadata.Key.of("probe-trailer", Metadata.ASCII_STRING_MARSHALLER);
  private final Host host;
  private final ProbeGrpc.ProbeBlockingStub leaf;

  private Main(Host host) {
    this.host = host;
    leaf = ProbeGrpc.newBlockingStub(host.peer("leaf"));
  }

  @Override
  public void echo(Payload request, StreamObserver<Payload> to) {
    if (request.getCompress()) ((ServerCallStreamObserver<Payload>) to).setCompression("gzip");
    host.answer(to, () -> request);
  }

  @Override
  public void fail(Failure request, StreamObserver<Payload> to) {
    host.answer(to, () -> {
      if (request.getCode() == 0) throw new IllegalStateException(request.getMessage());
      Metadata trailers = new Metadata();
      if (!request.getTrailer().isEmpty()) trailers.put(TRAILER, request.getTrailer());
      var failure = com.google.rpc.Status.newBuilder().setCode(request.getCode()).setMessage(request.getMessage());
      if (request.hasDetail()) failure.addDetails(request.getDetail());
      throw StatusProto.toStatusRuntimeException(failure.build(), trailers);
    });
  }

  @Override
  public void relay(Patience request, StreamObserver<Payload> to) {
    host.answer(to, () -> leaf.wait(request));
  }

  @Override
  public void wait(Patience request, StreamObserver<Payload> to) {
    host.answer(to, () -> {
      CountDownLatch gone = new CountDownLatch(1);
      Context.current().addListener(context -> gone.countDown(), Runnable::run);
      gone.await(request.getMs(), TimeUnit.MILLISECONDS);
      return Payload.getDefaultInstance();
    });
  }

  public static void main(String[] words) throws Exception {
    Host.main("probe", words, Map.of("probe", Main::new));
  }
}
