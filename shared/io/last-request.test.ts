import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";

import { lastRequestServer } from "./last-request.ts";

test("[LRQ1] connections without a request, or with one whose head does not end, are closed", async () => {
  const server = createServer(lastRequestServer(() => true, 500));
  onTestFinished(() => void server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const closes = ["", "GET / HTTP/1.1\r\nx: "].map(async (text) => {
    const connection = connect(port, "127.0.0.1").resume();
    connection.write(text);
    await once(connection, "close");
  });
  await Promise.all(closes);
}, 30_000); // Node closes them after 60 s by default.

test("[LRQ2] heads and TLS handshakes have at most 15 s", () => {
  expect(lastRequestServer(() => true)).toMatchObject({
    headersTimeout: 15_000,
    handshakeTimeout: 15_000,
    connectionsCheckingInterval: 7_500,
  });
});

test("[LRQ3] a server accepts any whole number of milliseconds for the head, also more than Node's 300 s", () => {
  for (const headMsMax of [1, 15_001, 300_001, 2 ** 40]) createServer(lastRequestServer(() => true, headMsMax));
});
