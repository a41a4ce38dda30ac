/** Headers of stored messages, read from bytes laid out as the client hands them out. */

import { headers as newHeaders } from "nats";
import { expect, test } from "vitest";
import { readStoredMessage } from "./log-reader.ts";

const LINES = [
  "Nats-Stream: acme_log_0",
  "Nats-Subject: acme.log.0.acme.notes",
  "Nats-Sequence: 7",
  "Nats-Time-Stamp: 2026-07-01T12:00:00.123456789Z",
  "Nats-Num-Pending: 3",
];
const STORED = { subject: "acme.log.0.acme.notes", streamSeq: 7, time: Date.UTC(2026, 6, 1, 12, 0, 0, 123), pending: 3 };

/** As the client returns it: a view of the received bytes, preceded by other bytes. */
function dataBehind(text: string): Uint8Array {
  const before = Buffer.from(text, "latin1");
  return new Uint8Array(Buffer.concat([before, Buffer.from("edits")])).subarray(before.byteLength);
}

function answered(data: Uint8Array, lines = LINES) {
  const headers = newHeaders();
  for (const line of lines) headers.append(line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2));
  return { data, headers };
}

test("[LOGREAD1] the position of a message is read from the bytes before its data, with any other headers", () => {
  const other = ["NATS/1.0", "Nats-Sequence: 6", "Nats-Subject: acme.log.0.acme.other", "", ""].join("\r\n");
  const text = ["NATS/1.0", "Nats-Expected-Stream: NATS/1.0", ...LINES, "", ""].join("\r\n");
  const message = answered(dataBehind(`${other}edits\r\n${text}`), []);
  expect(readStoredMessage(message, message.data)).toMatchObject(STORED);
});

test("[LOGREAD2] headers that are missing, or longer than a log's headers, are read through the client", () => {
  const long = ["NATS/1.0", `Other: ${"x".repeat(600)}`, ...LINES, "", ""].join("\r\n");
  for (const before of ["", "something else\r\n\r\n", "NATS/1.0\r\nNats-Sequence: 6\r\n\r\n and more", long]) {
    const message = answered(dataBehind(before));
    expect(readStoredMessage(message, message.data)).toMatchObject(STORED);
  }
});
