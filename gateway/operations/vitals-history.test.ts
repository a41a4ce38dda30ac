import { expect, test } from "vitest";

import { VITALS_EVERY_MS, type Vitals } from "../../shared/bus/vitals.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import { VitalsHistory } from "./vitals-history.ts";

const ROOM = "acme.notes" as RoomKey;
const at = (slot: number): UnixMillis => (slot * VITALS_EVERY_MS + 700) as UnixMillis;
const few = () => new VitalsHistory({ slotsMax: 5, instancesMax: 2, roomsMax: 2 });
const gateway = (instance: string, values: Record<string, number>): Vitals => ({ instance, role: "gateway", values });

test("[VHI1] connections of gateways are added, and of their lags the highest is shown", () => {
  const history = few();
  history.receiveVitals(gateway("gw-1", { connections: 3, natsLag: 0.5, unknown: 9 }), at(100));
  history.receiveVitals(gateway("gw-2", { connections: 4, natsLag: 0.25 }), at(100));
  const { from, lines, instances } = history.since(99, at(101));
  expect(from).toBe(100);
  expect(lines).toEqual([
    { role: "gateway", vital: "connections", values: [7] },
    { role: "gateway", vital: "natsLag", values: [0.5] },
  ]);
  expect(instances.map(({ instance }) => instance)).toEqual(["gw-1", "gw-2"]);
  expect(history.since(99, at(101), "gw-2").lines[0]).toMatchObject({ values: [4] });
});

test("[VHI2] the newest slots are kept, the slot of now is not shown, and a silent process leaves a gap", () => {
  const history = few();
  for (const slot of [90, 91, 96, 97]) history.receiveVitals(gateway("gw-1", { connections: slot }), at(slot));
  const { from, lines } = history.since(0, at(98));
  expect([from, lines[0]!.values]).toEqual([93, [undefined, undefined, undefined, 96, 97]]);
  expect(history.since(96, at(98)).lines[0]!.values).toEqual([97]);
  expect(history.since(0, at(97)).lines[0]!.values.at(-1)).toBe(96);
});

test("[VHI3] a message that arrives a moment late leaves no gap, and a date set back changes nothing that is kept", () => {
  const history = few();
  for (const [slot, connections] of [
    [95, 1],
    [97, 2],
    [20, 9],
  ] as const)
    history.receiveVitals(gateway("gw-1", { connections }), at(slot));
  expect(history.since(94, at(98)).lines[0]!.values).toEqual([1, 2, 2]);
});

test("[VHI5] running processes are those of the last three intervals, each with its newest version", () => {
  const history = new VitalsHistory({ slotsMax: 5, instancesMax: 9, roomsMax: 2 });
  history.receiveVitals(gateway("gw-2", {}), at(100));
  history.receiveVitals({ instance: "rs-1", role: "room-server", version: "0.2.1", values: {} }, at(100));
  history.receiveVitals({ instance: "gw-1", role: "gateway", version: "0.2.1", values: {} }, at(101));
  history.receiveVitals({ instance: "gw-1", role: "gateway", version: "0.3.0", values: {} }, at(102));
  expect(history.running(at(103))).toEqual([
    { instance: "gw-1", role: "gateway", version: "0.3.0", busVersion: 1 },
    { instance: "gw-2", role: "gateway", version: undefined, busVersion: 1 },
    { instance: "rs-1", role: "room-server", version: "0.2.1", busVersion: 1 },
  ]);
  expect(history.running(at(104)).map(({ instance }) => instance)).toEqual(["gw-1"]);
  expect(history.running(at(106))).toEqual([]);
});

test("[VHI7] a process that announced its orderly stop does not run, until vitals arrive again", () => {
  const history = few();
  history.receiveVitals(gateway("gw-1", {}), at(100));
  history.receiveVitals({ ...gateway("gw-1", {}), ends: true }, at(100));
  expect(history.running(at(101))).toEqual([]);
  history.receiveVitals(gateway("gw-1", {}), at(101));
  expect(history.running(at(102))).toHaveLength(1);
});

test("[VHI6] of running processes that cannot work together, each names the bus versions of the others", () => {
  const history = new VitalsHistory({ slotsMax: 5, instancesMax: 9, roomsMax: 2 });
  const receive = (instance: string, bus?: Vitals["bus"]) =>
    history.receiveVitals({ instance, role: "gateway", values: {}, ...(bus === undefined ? {} : { bus }) }, at(100));
  receive("gw-1");
  receive("gw-2", { version: 2, oldest: 1 });
  expect(history.running(at(100)).flatMap(({ cannotWorkWith = [] }) => cannotWorkWith)).toEqual([]);
  receive("gw-3", { version: 3, oldest: 2 });
  receive("gw-4", { version: 4, oldest: 3 });
  expect(history.running(at(100))).toEqual([
    { instance: "gw-1", role: "gateway", busVersion: 1, cannotWorkWith: [3, 4] },
    { instance: "gw-2", role: "gateway", busVersion: 2, cannotWorkWith: [4] },
    { instance: "gw-3", role: "gateway", busVersion: 3, cannotWorkWith: [1] },
    { instance: "gw-4", role: "gateway", busVersion: 4, cannotWorkWith: [1, 2] },
  ]);
});

test("[VHI4] of processes and rooms the newest are kept, and a process is not shown after an hour of silence", () => {
  const history = few();
  for (const [index, instance] of ["gw-1", "gw-2", "gw-3"].entries())
    history.receiveVitals(gateway(instance, { connections: 1 }), at(100 + index));
  expect(history.since(0, at(103)).instances.map(({ instance }) => instance)).toEqual(["gw-2", "gw-3"]);
  expect(history.since(0, at(200))).toMatchObject({ lines: [], instances: [] });
  for (const room of ["acme.notes", "acme.plan", "acme.board"] as RoomKey[])
    history.receiveVitals(
      { instance: "rs-1", role: "room-server", values: {}, rooms: [{ room, participants: 3, editsPerSecond: 0.5, mode: "flat" }] },
      at(103),
    );
  expect(history.ofRoom(ROOM, 0, at(104))).toBeUndefined();
  expect(history.ofRoom("acme.plan" as RoomKey, 102, at(104))).toEqual({ from: 103, participants: [3], editsPerSecond: [0.5] });
});

test("[VHI7] the lowest newest value is that of the running processes which have it", () => {
  const history = few();
  history.receiveVitals(gateway("gw-1", { diskFreeBytes: 9 }), at(100));
  history.receiveVitals(gateway("gw-1", { diskFreeBytes: 5 }), at(101));
  history.receiveVitals(gateway("gw-2", { connections: 1 }), at(101));
  expect([history.lowest("diskFreeBytes", at(102)), history.lowest("natsLag", at(102)), history.lowest("diskFreeBytes", at(105))]).toEqual([
    5,
    undefined,
    undefined,
  ]);
});
