/** A client that was in a room, joins it again and is refused leaves neither presence nor a board watch behind. */

import { expect, test } from "vitest";

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { type ClientKey, type Epoch, type Position, type RoomId, roomKey, type Seq, START, type TenantId } from "../../shared/ids.ts";
import type { Channel, ServerFrame } from "../../shared/wire/frames.ts";
import { until } from "../../test/contract/real-nats.ts";
import { gatewayRig, metric, ROOM, TENANT } from "../testing/gateway-rig.ts";
import type { WireClient } from "../testing/wire-client.ts";

type Joined = Extract<ServerFrame, { type: "joined" }>;
type Refused = Extract<ServerFrame, { type: "join-refused" }>;

const rig = gatewayRig("turned", { joinMsMax: "500", roomLingerMs: "1" });
const room = roomKey(TENANT as TenantId, ROOM as RoomId);
/** A position that the gateway does not know, so that it asks the owner. */
const AHEAD: Position = { epoch: 1 as Epoch, seq: 5 as Seq };

function join(client: WireClient, request: number, position: Position): void {
  client.send({ type: "join", request, room: ROOM as RoomId, clientKey: "ann-ann-key" as ClientKey, position });
}

function watch(client: WireClient, channel: Channel): void {
  client.send({ type: "watch-board", channel, role: "everyone", window: "day", shown: 10 });
}

/** Joins until the new owner answers in time. Under load one or two joins may be refused first. */
async function joined(ann: WireClient): Promise<Joined> {
  const answers = () =>
    ann.received.filter(
      (frame): frame is Joined | Refused => (frame.type === "joined" || frame.type === "join-refused") && frame.request > 50,
    );
  for (let request = 51; ; request++) {
    join(ann, request, START);
    await ann.until(() => answers().length > request - 51, "an answer");
    const answer = answers().at(-1)!;
    if (answer.type === "joined") return answer;
    expect(answer.reason).toBe("unavailable");
  }
}

test("[GBO13] a client whose rejoin is refused loses its presence and boards in the room, and gets both with its next channel", async () => {
  const exited: number[] = [];
  const owner = rig.startOwner();
  owner.onPresence = (message) => {
    if (message.kind === "members") exited.push(message.exited.length);
  };
  const address = await rig.start();
  const ann = await rig.greet(address, "ann");
  const { channel } = await ann.join(ROOM, "ann-ann-key");
  watch(ann, channel);
  await until(async () => (await metric(address, "coroom_gateway_board_watchers")) === 1, "the board to be watched");
  owner.mode = "silent";
  join(ann, 50, AHEAD);
  expect(await ann.next("join-refused")).toMatchObject({ request: 50, reason: "unavailable" });
  watch(ann, channel); // Sent before the client received the refusal.
  await until(async () => (await metric(address, "coroom_gateway_board_watchers")) === 0, "the watch to end");
  await until(() => exited.includes(1), "her to be out of the room's presence");
  await until(async () => (await metric(address, "coroom_gateway_rooms")) === 0, "the room to be released");

  rig.startOwner();
  const again = await joined(ann);
  expect(again.channel).not.toBe(channel);
  watch(ann, again.channel);
  await until(async () => (await metric(address, "coroom_gateway_board_watchers")) === 1, "the board to be watched again");
  rig.connection.publish(
    rig.subjects.boards(room),
    encodeJson({
      kind: "shown",
      room,
      role: "everyone",
      window: "day",
      windowId: "2026-11-22",
      epoch: 1,
      seq: 1,
      members: 1,
      shown: 10,
      checksum: 1,
      ranking: [["ann", 3, "Ann"]],
    }),
  );
  await ann.until(
    () => ann.received.some((frame) => frame.type === "board" && frame.channel === again.channel && frame.ranking.length > 0),
    "the board",
  );
});
