/** Operator commands that need only NATS: the report of a room, the events, and rooms with incomplete snapshots. */

import { setTimeout as sleep } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";

import { CheckpointEntry, isDeleted } from "../shared/bus/checkpoint.ts";
import { RoomReport, type RoomReportRequest } from "../shared/bus/fleet-messages.ts";
import type { OperationsEvent } from "../shared/bus/operations-events.ts";
import { StorageAnswer } from "../shared/bus/storage-messages.ts";
import type { NatsRole } from "../shared/bus/permissions.ts";
import { type Subjects, subjectsOf } from "../shared/bus/subjects.ts";
import { parseRoomOfTenant, type RoomKey, parseRoomKey, roomOf, tenantOf } from "../shared/ids.ts";
import { decodeEntry, existingBucket, isUnsettled } from "../shared/io/jetstream-stores.ts";
import { withoutSecrets } from "../shared/io/nats-address.ts";
import { requestReply } from "../shared/io/nats-json.ts";
import { hasOperationsStream, watchNumbered } from "../shared/io/nats-operations.ts";
import { closeNats, connectAs, type NatsConnection } from "../shared/io/nats.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import { SettingError, type Values } from "../shared/settings/settings.ts";
import type { opsRoomSettings, opsWatchSettings, whereSettings, opsLeftOutSettings } from "./command-settings.ts";
import type { PrintLine } from "./command.ts";
import { localNatsUrl } from "./local-addresses.ts";

const ANSWER_MS_MAX = 2_000;
const RATES_OVER_MS = 1_000;
const RETRY_MS = 500;

/** Prints the report of a room, and what it stores, which is known of closed rooms too. Its rates are measured over one second. */
export async function describeRoom(config: Values<typeof opsRoomSettings>, print: PrintLine): Promise<void> {
  const question: RoomReportRequest = { room: roomOfFlags(config) };
  await withOperator(config, async (nats) => {
    const { askRooms, askStorage } = subjectsOf(config.environment);
    const askOwner = (): Promise<RoomReport | undefined> => requestReply(nats, askRooms, question, RoomReport, ANSWER_MS_MAX);
    const before = await askOwner();
    const [stored] = await Promise.all([
      requestReply(nats, askStorage, question, StorageAnswer, ANSWER_MS_MAX), // Of the document service that reads the room's log.
      sleep(RATES_OVER_MS),
    ]);
    const after = before && (await askOwner());
    const isStored = stored !== undefined && stored.snapshots + stored.history + stored.log > 0;
    if (after === undefined && !isStored)
      throw new SettingError(
        `no room server owns "${config.room}" of the tenant "${config.tenant}". The room is not open, or --room, --tenant or COROOM_ENVIRONMENT is wrong`,
      );
    const lines = [...(before && after ? roomLines(before, after) : ["open false"]), ...(stored === undefined ? [] : storageLines(stored))];
    for (const line of lines) print(line);
  });
}

/** The room of the flags `--tenant` and `--room`. */
export function roomOfFlags({ tenant, room }: { readonly tenant: string; readonly room: string }): RoomKey {
  const key = parseRoomOfTenant(tenant, room);
  if (key !== undefined) return key;
  throw new SettingError(
    `invalid room id: --tenant ${tenant} --room ${room}. Rule WIRE6 in shared/wire/WIRE.md lists the characters of ids`,
  );
}

function roomLines(before: RoomReport, { gateways, statesReceived, deltasPublished, deltaBytesPublished, ...facts }: RoomReport): string[] {
  const perSecond = (count: number): number => Math.round((count * 1_000) / RATES_OVER_MS);
  return [
    ...Object.entries(facts).map(([name, value]) => `${name} ${value}`),
    `statesPerSecond ${perSecond(statesReceived - before.statesReceived)}`,
    `deltasPerSecond ${perSecond(deltasPublished - before.deltasPublished)}`,
    `deltaBytesPerSecond ${perSecond(deltaBytesPublished - before.deltaBytesPublished)}`,
    ...Object.entries(gateways).map(([gateway, members]) => `gateway ${gateway} members ${members}`),
  ];
}

function storageLines({ snapshots, history, log, roomBytesMax, tenantBytes, tenantBytesMax }: StorageAnswer): string[] {
  const limit = (max: number): string => (max === 0 ? "unlimited" : String(max));
  return [
    `storedBytes ${snapshots + history + log} of ${limit(roomBytesMax)}`,
    `snapshotBytes ${snapshots}`,
    `historyBytes ${history}`,
    `logBytes ${log}`,
    `tenantStoredBytes ${tenantBytes} of ${limit(tenantBytesMax)}`,
  ];
}

/**
 * Prints one line per event until it is stopped. It only reads, because it does not know the configured limits of the
 * stream.
 */
export async function watchEvents(config: Values<typeof opsWatchSettings>, print: PrintLine): Promise<Running> {
  const subjects = subjectsOf(config.environment);
  const nats = await connectOperator(config);
  if (!(await hasOperationsStream(nats, subjects))) {
    await closeNats(nats);
    throw new SettingError(
      `the environment "${config.environment}" has no events yet. Start the system, or set COROOM_ENVIRONMENT to the environment to watch`,
    );
  }
  const stopped = new AbortController();
  const watching = printEvents(nats, subjects, { last: config.last, print, signal: stopped.signal });
  return {
    stop: async () => {
      stopped.abort();
      await watching;
      await closeNats(nats);
    },
  };
}

type Printing = { readonly last: number; readonly print: PrintLine; readonly signal: AbortSignal };

/** Continues after an outage of NATS behind the last printed event. A log that lost its end gives its seqs again. */
async function printEvents(nats: NatsConnection, subjects: Subjects, { last, print, signal }: Printing): Promise<void> {
  let printed: number | undefined;
  const receiveBegun = (newest: number): void => void (printed &&= Math.min(printed, newest));
  while (!signal.aborted) {
    try {
      const wanted = printed === undefined ? last : Number.MAX_SAFE_INTEGER;
      for await (const { seq, event } of watchNumbered(nats, subjects, wanted, signal, receiveBegun)) {
        if (seq <= (printed ?? 0)) continue;
        printed = seq;
        if (event !== undefined) print(describeEvent(event));
      }
    } catch (cause) {
      if (!isUnsettled(cause)) throw cause;
      await sleep(RETRY_MS, undefined, { signal }).catch(() => {}); // Aborted.
    }
  }
}

/**
 * Throws SettingError when no server answers (wrong address or system not running) or when NATS rejects the login.
 * `role`: the role whose user of NATS the settings name.
 */
export async function connectOperator(
  { natsUrl: given, dataDir, ...settings }: Values<typeof whereSettings>,
  role: NatsRole = "operator",
): Promise<NatsConnection> {
  const natsUrl = given === "" ? localNatsUrl(dataDir) : given;
  try {
    return await connectAs(role, "coroom ops", { ...settings, natsUrl });
  } catch (cause) {
    if (cause instanceof SettingError) throw cause;
    throw new SettingError(
      `no NATS server answers at ${withoutSecrets(natsUrl)}. Start the system, or set COROOM_NATS_URL or COROOM_DATA_DIR to its address or folder`,
      { cause },
    );
  }
}

/** Runs with a connection of the operator, and closes it. Throws what `connectOperator` throws. */
export async function withOperator(config: Values<typeof whereSettings>, run: (nats: NatsConnection) => Promise<void>): Promise<void> {
  const nats = await connectOperator(config);
  try {
    await run(nats);
  } finally {
    await closeNats(nats);
  }
}

/** Formats an event as one line for people: quotes text with spaces, rounds measured numbers. */
export function describeEvent({ at, by, kind, ...facts }: OperationsEvent): string {
  const shown = (value: unknown): string => {
    if (typeof value === "number") return String(Math.round(value * 10) / 10);
    return typeof value === "string" && /[\s="]/.test(value) ? JSON.stringify(value) : String(value);
  };
  const fields = Object.entries(facts).map(([name, value]) => `${name}=${shown(value)}`);
  return [new Date(at).toISOString(), kind, ...fields, `by=${by}`].join(" ");
}

/**
 * Prints one line per room whose snapshot lacks edits, and their number. The logs of these rooms are never trimmed, so
 * an operator should inspect their content. Needs NATS only.
 */
export function listLeftOut(config: Values<typeof opsLeftOutSettings>, print: PrintLine): Promise<void> {
  return withOperator(config, async (nats) => {
    const bucket = await existingBucket(jetstream(nats), subjectsOf(config.environment).checkpointsBucket);
    let [rooms, found] = [0, 0];
    for await (const key of (await bucket?.keys()) ?? []) {
      const [room, entry] = [parseRoomKey(key), await bucket!.get(key)];
      const checkpoint = decodeEntry(CheckpointEntry, entry);
      if (room === undefined || checkpoint === undefined || isDeleted(checkpoint)) continue;
      rooms += 1;
      if (checkpoint.leftOut === undefined || checkpoint.leftOut === 0) continue;
      found += 1;
      print(
        `tenant=${tenantOf(room)} room=${roomOf(room)} leftOut=${checkpoint.leftOut} seq=${checkpoint.seq} at=${new Date(checkpoint.time).toISOString()}`,
      );
    }
    print(`${found} of ${rooms} rooms with a snapshot have edits that it does not contain`);
  });
}
