import { expect, test } from "vitest";

import { encodePresenceToOwner, type PresenceToOwner } from "../shared/bus/presence-messages.ts";
import type { ClientId, GatewayId, Millis, UserId } from "../shared/ids.ts";
import type { ConnectionId } from "./ports.ts";
import { PresenceUpward } from "./presence-upward.ts";
import { PresenceView } from "./presence-view.ts";

const options = { gateway: "gw-here" as GatewayId, repeatMs: 500, keepaliveMs: 5_000, spectatorAfterMs: 60_000, memberBytesMax: 1_000, memberFieldsMax: 10, flushMs: 15, ownerSilenceMsMax: 2_000 };
const MANY = 5_000;
const NATS_BYTES_MAX = 1024 ** 2;
const LONG_NAME = "\u2654".repeat(256);
const client = (index: number) => `client${String(index).padStart(10, "0")}` as ClientId;

function withMany(): PresenceUpward {
  const up = new PresenceUpward(options, new PresenceView(), 0, 0 as Millis);
  for (let index = 0; index < MANY; index++) up.enter(index as ConnectionId, { client: client(index), user: `user-${index}` as UserId, name: LONG_NAME, canWrite: true, spectator: false }, 0 as Millis);
  return up;
}

const members = (messages: readonly PresenceToOwner[]) => messages.flatMap((message) => (message.kind === "members" ? [message] : []));

test("[PRG40] very many members with long names are said in parts that NATS carries, all of one version", () => {
  const { messages } = withMany().takeDue(30, 0 as Millis);
  const said = members(messages);
  for (const message of said) expect(encodePresenceToOwner(message).byteLength).toBeLessThan(NATS_BYTES_MAX / 2);
  expect(said.flatMap(({ entered }) => entered.map((member) => member.client))).toEqual(Array.from({ length: MANY }, (_, index) => client(index)));
  expect(said.map(({ partOf }) => partOf)).toEqual(said.map((_, index) => ({ part: index + 1, parts: said.length })));
  expect(new Set(said.map(({ version, whole }) => `${version} ${whole}`)).size).toBe(1);
});

test("[PRG41] very many who leave at once are said so in parts too, a few in one message", () => {
  const up = withMany();
  up.takeDue(30, 0 as Millis);
  up.members.receiveHeard(up.members.version);
  up.leave(0 as ConnectionId);
  expect(members(up.takeDue(30, 10 as Millis).messages)).toMatchObject([{ whole: false, exited: [client(0)] }]);
  for (let index = 1; index < MANY; index++) up.leave(index as ConnectionId);
  const said = members(up.takeDue(30, 20 as Millis).messages);
  expect(said.flatMap(({ exited }) => exited)).toHaveLength(MANY - 1);
});
