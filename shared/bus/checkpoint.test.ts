import { expect, test } from "vitest";

import { Checkpoint, epochsOf } from "./checkpoint.ts";
import { decodeJson, encodeJson } from "./json-messages.ts";

const client = { client: "Zk3_-abcdefgHIJK", user: "ada", counter: 5, seq: 412, lastSeen: 1_795_000_000_000 };
const checkpoint = {
  epoch: 3,
  seq: 412,
  streamSeq: 97,
  time: 1_795_000_000_000,
  clients: [client],
  snapshot: { object: "acme.notes/412", bytes: 0, sha256: "e3b0c442" },
};

test("[CHK1] a checkpoint decodes to what was encoded", () => {
  expect(decodeJson(Checkpoint, encodeJson(checkpoint))).toEqual(checkpoint);
  expect(decodeJson(Checkpoint, encodeJson({ ...checkpoint, seq: 0, clients: [] }))).toEqual({ ...checkpoint, seq: 0, clients: [] });
});

test("[CHK3] a checkpoint of an earlier build, without epochs, yields its own epoch", () => {
  const { data } = Checkpoint.safeParse({ ...checkpoint, epochs: [1, 0, 3, 400] });
  expect([epochsOf(data!), epochsOf(Checkpoint.parse(checkpoint))]).toEqual([
    [1, 0, 3, 400],
    [3, 412],
  ]);
});

test.each([
  ["an epoch that begins nowhere", { ...checkpoint, epochs: [1, 0, 3] }],
  ["no epoch yet", { ...checkpoint, epoch: 0 }],
  ["no record covered", { ...checkpoint, streamSeq: 0 }],
  ["a seq below 0", { ...checkpoint, seq: -1 }],
  ["a seq over 2^53 - 1", { ...checkpoint, seq: 2 ** 53 }],
  ["no snapshot", { ...checkpoint, snapshot: undefined }],
  ["a client id of 15 characters", { ...checkpoint, clients: [{ ...client, client: "Zk3_-abcdefgHIJ" }] }],
  ["a user that no record could name", { ...checkpoint, clients: [{ ...client, user: "" }] }],
  ["counter 0", { ...checkpoint, clients: [{ ...client, counter: 0 }] }],
])("[CHK2] a checkpoint with %s is refused", (_, given) => {
  expect(decodeJson(Checkpoint, encodeJson(given))).toBeUndefined();
});
