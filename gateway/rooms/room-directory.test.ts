import { expect, test } from "vitest";

import { readSettings } from "../../shared/settings/settings.ts";
import type { ClientId, Epoch, GatewayId, Millis, RoomKey, Seq } from "../../shared/ids.ts";
import { gatewaySettings } from "../config.ts";
import type { ConnectionId } from "../ports.ts";
import { RoomDirectory } from "./room-directory.ts";
import { UnackedBudget } from "./unacked-budget.ts";

test("[RDIR1] a room that is followed again never accepts a late answer to a question from before", () => {
  const config = readSettings(gatewaySettings, { flags: {}, env: {} });
  const directory = new RoomDirectory(
    { ...config, gateway: "gw" as GatewayId, roomLingerMs: 0 },
    new UnackedBudget({ bytesMax: config.forwardedBytesMax }),
  );
  const key = "acme.notes" as RoomKey;
  const [connection, client] = [1 as ConnectionId, "annannannannann1" as ClientId];
  const askFrom = (seq: number): number => {
    const { room } = directory.open(key, 0 as Millis);
    room.receiveInput({ kind: "attached" }, 0 as Millis);
    const position = { epoch: 1 as Epoch, seq: seq as Seq };
    const effects = room.receiveInput({ kind: "join", connection, request: 1, client, position }, 0 as Millis);
    const question = effects.flatMap((effect) => (effect.kind === "send-to-owner" ? [effect.message] : []))[0];
    if (question?.kind !== "catch-up-request") throw new Error("a join asks for the edits after its position");
    room.receiveInput({ kind: "leave", connection }, 0 as Millis);
    return question.request;
  };
  const first = askFrom(40);
  expect(directory.closeIdle(1 as Millis)).toEqual([key]);
  expect(askFrom(0)).not.toBe(first);
});
