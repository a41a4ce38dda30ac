import { expect, test } from "vitest";

import { readSettings } from "../shared/settings/settings.ts";
import { gatewaySettings } from "../gateway/config.ts";
import { roomServerSettings } from "../room-server/config.ts";
import { probeSettings } from "./config.ts";
import { planRooms } from "./plan.ts";

const read = (flags: Readonly<Record<string, string>> = {}) => readSettings(probeSettings, { flags, env: {} });

test.each([
  [{ probeTenant: "a.b" }, /--probe-tenant=a.b must be 1 to 64 letters/],
  [{ probeLargeParticipants: "1" }, /must be 2 or more/],
  [{ probeEditsPerSecond: "11" }, /must be 10 at most/],
  [{ probeHeavyPresencePerSecond: "21" }, /must be 20 at most/],
])("[PCF3] %j is rejected with the allowed values", (flags, message) => {
  expect(() => read(flags as Readonly<Record<string, string>>)).toThrow(message);
});

test("[PCF4] the default settings stay within the gateways' limits for one user and connection", () => {
  const config = read();
  const connections = planRooms(config).reduce((sum, { participants }) => sum + participants + 1, 0);
  expect(connections).toBe(65);
  expect(connections).toBeLessThan(gatewaySettings.connectionsPerUserMax.fallback);
  expect(config.probeHeavyEditsPerSecond).toBeLessThan(gatewaySettings.editsPerSecond.fallback);
  expect(config.probeHeavyPresencePerSecond).toBeLessThan(gatewaySettings.presencePerSecondMax.fallback);
});

test("[PCF5] only the large room is large enough for hierarchical presence", () => {
  const { fallback } = roomServerSettings.flatParticipantsMax;
  expect(
    planRooms(read())
      .filter(({ participants }) => participants > fallback)
      .map(({ kind }) => kind),
  ).toEqual(["large"]);
});

test("[PCF6] each room has a different name, which is the same at each start", () => {
  const rooms = planRooms(read({ probeRoomsPerKind: "2" })).map(({ room }) => room);
  expect(rooms).toEqual([
    "probe-small-1",
    "probe-small-2",
    "probe-large-1",
    "probe-large-2",
    "probe-edit-heavy-1",
    "probe-edit-heavy-2",
    "probe-presence-heavy-1",
    "probe-presence-heavy-2",
  ]);
});
