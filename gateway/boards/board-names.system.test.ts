import { expect, test } from "vitest";

import { type DisplayName, DisplayNames } from "../../shared/bus/board-messages.ts";
import { decodeJson } from "../../shared/bus/json-messages.ts";
import { type ClientKey, type RoomId, START } from "../../shared/ids.ts";
import { until } from "../../test/contract/real-nats.ts";
import { gatewayRig, ROOM, TENANT, tokenOf } from "../testing/gateway-rig.ts";

const rig = gatewayRig("names");

test("[GBO12] the name of every user who may write is published, also when the right came after JOIN", async () => {
  const published: DisplayName[] = [];
  rig.connection.subscribe(rig.subjects.boardNames, {
    callback: (_, msg) => void published.push(...(decodeJson(DisplayNames, msg.data) ?? [])),
  });
  const address = await rig.start();
  const client = await rig.connect(address);
  client.send({ type: "hello", version: 1, token: await tokenOf("ann", { name: "Ann", rights: ["read"] }), agent: "test" });
  client.send({ type: "join", request: 1, room: ROOM as RoomId, clientKey: "key-of-ann" as ClientKey, position: START });
  await client.next("welcome");
  client.send({ type: "renew", token: await tokenOf("ann", { name: "Ann", rights: ["read", "write"] }) });
  await client.next("renewed");
  rig.startOwner();
  expect((await client.next("joined")).rights).toEqual({ read: true, write: true });
  await until(() => published.length > 0, "the name");
  expect(published).toEqual([{ room: `${TENANT}.${ROOM}`, user: "ann", name: "Ann" }]);

  const other = await rig.connect(address);
  other.send({ type: "hello", version: 1, token: await tokenOf("bob", { rights: ["read", "write"] }), agent: "test" });
  other.send({ type: "join", request: 1, room: ROOM as RoomId, clientKey: "key-of-bob" as ClientKey, position: START });
  await until(() => published.length > 1, "a name that is the user's id");
  expect(published[1]).toEqual({ room: `${TENANT}.${ROOM}`, user: "bob", name: "bob" });
});
