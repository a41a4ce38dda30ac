import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { Epoch, RoomKey } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { roomServerMetrics } from "../metrics.ts";
import type { PresenceBus } from "../ports.ts";
import { OwnerPresenceHost } from "./presence-host.ts";

const options = {
  participantsMax: 100,
  presenceBytesMax: 10_000,
  presenceTickMs: 50,
  presenceGatherMs: 80,
  gatewaySilenceMsMax: 2_000,
  presenceSilenceMsMax: 12_000,
  beaconMs: 1_000,
  beaconsWhenQuiet: 3,
  flatParticipantsMax: 50,
  flatAgainParticipants: 40,
  modeMsMin: 5_000,
};
const room = "acme.notes" as RoomKey;
const silent = (): void => {};
const log = { debug: silent, info: silent, warn: silent, error: silent };

test("[PRS26] an ownership that ends before it has sent anything sends nothing, not even after the room began again", async () => {
  const clock = new FakeClock();
  const sent: Epoch[] = [];
  const bus: PresenceBus = {
    broadcast: (_, { epoch }) => sent.push(epoch),
    answer: silent,
    onHeartbeat: silent,
    connectionStatus: () => ({ isUp: true, losses: 0 }),
  };
  const host = new OwnerPresenceHost(bus, options, {
    clock,
    endOfTurn: (run) => void clock.after(0, run),
    log,
    metrics: roomServerMetrics(new Registry()),
    operations: { report: silent },
    onDeposed: silent,
    activity: { report: silent },
  });
  host.begin(room, 1 as Epoch);
  host.end(room);
  host.begin(room, 2 as Epoch);
  await clock.advance(5_000);
  expect([...new Set(sent)]).toEqual([2]);
  host.stop();
});
