/** What the people who run Coroom ask of it from a terminal. It needs NATS and no other role. */

import { setTimeout as sleep } from "node:timers/promises";

import { RequestError, TimeoutError } from "nats";

import { decodeJson, encodeJson } from "../shared/bus/json-messages.ts";
import type { OperationsEvent } from "../shared/bus/operations-events.ts";
import { RoomAccount, type RoomQuestion } from "../shared/bus/room-account.ts";
import { type Subjects, subjectsOf } from "../shared/bus/subjects.ts";
import { SettingError, type Values } from "../shared/config.ts";
import { parseRoomId, parseTenantId, type RoomKey, roomKey } from "../shared/ids.ts";
import { closeNats, connectAs, type NatsConnection } from "../shared/io/nats.ts";
import { withoutSecrets } from "../shared/io/nats-address.ts";
import { hasOperationsStream } from "../shared/io/nats-operations.ts";
import { watchOperations } from "../shared/io/watch-operations.ts";
import type { Running } from "../shared/lifecycle.ts";
import { localNatsUrl } from "./local-nats-url.ts";
import type { opsRoomSettings, opsWatchSettings, whereSettings } from "./ops-settings.ts";

const ANSWER_MS_MAX = 2_000;
const RATES_OVER_MS = 1_000;

/** Says how a room is; its rates are those of the second that this takes. */
export async function describeRoom(config: Values<typeof opsRoomSettings>, say: (line: string) => void): Promise<void> {
  const [tenant, room] = [parseTenantId(config.tenant), parseRoomId(config.room)];
  if (tenant === undefined || room === undefined)
    throw new SettingError(`there can be no room "${config.room}" of a tenant "${config.tenant}"`);
  const nats = await connectOperator(config);
  try {
    const ask = () => askOwner(nats, subjectsOf(config.environment), roomKey(tenant, room));
    const before = await ask();
    await sleep(RATES_OVER_MS);
    const after = await ask();
    if (before === undefined || after === undefined)
      throw new SettingError(
        `no room server says that it owns "${config.room}" of "${config.tenant}": nobody has it open, or its name, tenant or COROOM_ENVIRONMENT is another`,
      );
    for (const line of roomLines(before, after)) say(line);
  } finally {
    await closeNats(nats);
  }
}

async function askOwner(nats: NatsConnection, subjects: Subjects, room: RoomKey): Promise<RoomAccount | undefined> {
  try {
    return decodeJson(
      RoomAccount,
      (await nats.request(subjects.askRooms, encodeJson({ room } satisfies RoomQuestion), { timeout: ANSWER_MS_MAX })).data,
    );
  } catch (error) {
    if (error instanceof TimeoutError || error instanceof RequestError) return undefined; // No room server at all, or none of them owns it.
    throw error;
  }
}

function roomLines(before: RoomAccount, { gateways, statesReceived, newsTold, newsBytesTold, ...facts }: RoomAccount): string[] {
  const perSecond = (count: number): number => Math.round((count * 1_000) / RATES_OVER_MS);
  return [
    ...Object.entries(facts).map(([name, value]) => `${name} ${value}`),
    `statesPerSecond ${perSecond(statesReceived - before.statesReceived)}`,
    `newsPerSecond ${perSecond(newsTold - before.newsTold)}`,
    `newsBytesPerSecond ${perSecond(newsBytesTold - before.newsBytesTold)}`,
    ...Object.entries(gateways).map(([gateway, members]) => `gateway ${gateway} members ${members}`),
  ];
}

/** Says a line for each event, until stopped. It only reads: the stream and its limits are the system's, whose settings are not known here. */
export async function watchEvents(config: Values<typeof opsWatchSettings>, say: (line: string) => void): Promise<Running> {
  const subjects = subjectsOf(config.environment);
  const nats = await connectOperator(config);
  if (!(await hasOperationsStream(nats, subjects))) {
    await closeNats(nats);
    throw new SettingError(
      `nothing in the environment "${config.environment}" has told of an event yet: start the system, or set COROOM_ENVIRONMENT to that of the one to watch`,
    );
  }
  const stopped = new AbortController();
  const watching = (async () => {
    for await (const event of watchOperations(nats, subjects, config.last, stopped.signal)) say(describeEvent(event));
  })();
  return {
    stop: async () => {
      stopped.abort();
      await watching;
      await closeNats(nats);
    },
  };
}

/** It fails where nobody answers, for the address is wrong or the system is not running, and where NATS does not let it in. */
export async function connectOperator({
  natsUrl: given,
  dataDir,
  ...settings
}: Omit<Values<typeof whereSettings>, "environment">): Promise<NatsConnection> {
  const natsUrl = given === "" ? localNatsUrl(dataDir) : given;
  try {
    return await connectAs("coroom ops", { ...settings, natsUrl });
  } catch (cause) {
    if (cause instanceof SettingError) throw cause;
    throw new SettingError(
      `no NATS server answers at ${withoutSecrets(natsUrl)}: start the system, or set COROOM_NATS_URL or COROOM_DATA_DIR to where it is`,
      { cause },
    );
  }
}

/** One line for a person to read. */
export function describeEvent({ at, by, kind, ...facts }: OperationsEvent): string {
  const told = Object.entries(facts).map(
    ([name, value]) => `${name}=${typeof value === "string" && /[\s="]/.test(value) ? JSON.stringify(value) : String(value)}`,
  );
  return [new Date(at).toISOString(), kind, ...told, `by=${by}`].join(" ");
}
