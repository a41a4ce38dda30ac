/** The end of a connection, with and without a running NATS server. */

import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";

import { type RealNats, startRealNats, until } from "../../test/contract/real-nats.ts";
import { closeNats, connectNats, type Msg, respond, publish, subscribeLightly } from "./nats.ts";

let server: RealNats;
beforeEach(async () => {
  server = await startRealNats();
});
afterEach(() => server.stop());

test("[NAT1] published messages are delivered before the connection ends", async () => {
  const [from, to] = [await connectNats({ servers: server.url, name: "from" }), await connectNats({ servers: server.url, name: "to" })];
  let received = 0;
  to.subscribe("words", { callback: () => void (received += 1) });
  await to.flush();
  for (let word = 0; word < 1_000; word++) from.publish("words", "w");
  await closeNats(from);
  expect(from.isClosed()).toBe(true);
  await until(() => received === 1_000, "all words");
  await closeNats(to);
});

test("[NAT2] the connection ends even while NATS is unreachable, so that a process stops in order", async () => {
  const nats = await connectNats({ servers: server.url, name: "test" });
  nats.subscribe("words", { callback: () => {} });
  await nats.flush();
  await server.crash(() => closeNats(nats));
  expect(nats.isClosed()).toBe(true);
});

test("[NAT3] publishing from timers and late answers while the connection ends does not throw", async () => {
  const [nats, asker] = [
    await connectNats({ servers: server.url, name: "test" }),
    await connectNats({ servers: server.url, name: "asker" }),
  ];
  const asked = new Promise<Msg>((resolve) => nats.subscribe("questions", { callback: (_, msg) => resolve(msg) }));
  await nats.flush();
  asker.publish("questions", "?", { reply: "answers" });
  const question = await asked;
  const refused: unknown[] = [];
  let ended = false;
  const closing = closeNats(nats).then(() => (ended = true));
  while (!ended) {
    try {
      nats.publish("words", "w");
    } catch (error) {
      refused.push(error);
    }
    publish(nats, "words", "w");
    respond(question, Buffer.from("!"));
    await setImmediate();
  }
  await closing;
  expect(refused, "the client itself refuses").not.toEqual([]);
  publish(nats, "words", "w");
  expect(() => publish(asker, "no subject", "w"), "a mistake is thrown").toThrow();
  await closeNats(asker);
});

test("[NAT4] every message below the length at which the client throws is delivered", async () => {
  const nats = await connectNats({ servers: server.url, name: "test" });
  const longest = new Uint8Array(nats.info!.max_payload);
  const tooLong = new Uint8Array(longest.byteLength + 1);
  publish(nats, "words", longest);
  expect(() => publish(nats, "words", tooLong)).toThrow();
  await closeNats(nats);
});

test("[NAT18] a light subscription receives messages, ends by unsubscribe or drain, is restored with the connection and ends with it", async () => {
  const nats = await connectNats({ servers: server.url, name: "test" });
  const received: string[] = [];
  const lines = ["kept", "left", "drained"].map((subject) =>
    subscribeLightly(nats, subject, (error, msg) => void received.push(error?.message ?? msg.subject)),
  );
  const sayAll = async (): Promise<void> => {
    for (const subject of ["left", "drained", "kept"]) publish(nats, subject);
    await nats.flush();
  };
  await sayAll();
  expect(received).toEqual(["left", "drained", "kept"]);
  lines[1]!.unsubscribe();
  await lines[2]!.drain();
  expect(lines.map((line) => line.isClosed())).toEqual([false, true, true]);
  await sayAll();
  expect(received.splice(0)).toEqual(["left", "drained", "kept", "kept"]);
  const back = (async () => {
    for await (const { type } of nats.status()) if (type === "reconnect") return;
  })();
  await server.crash();
  await back;
  await sayAll();
  expect(received).toEqual(["kept"]);
  await closeNats(nats);
  expect(lines[0]!.isClosed()).toBe(true);
});
