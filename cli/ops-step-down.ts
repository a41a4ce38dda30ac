/**
 * Moves the leaders of all streams away from one nats-server. Stopping that server then costs no election. The command
 * refuses when a stream could not work without the server. It needs NATS only.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { jetstreamManager, type JetStreamManager, type StreamInfo } from "@nats-io/jetstream";

import { SettingError, type Values } from "../shared/settings/settings.ts";
import { isUnsettled, retryUntilSettled } from "../shared/io/jetstream-stores.ts";
import type { NatsConnection } from "../shared/io/nats.ts";
import type { opsStepDownSettings } from "./command-settings.ts";
import type { PrintLine } from "./command.ts";
import { withOperator } from "./ops.ts";

const POLL_MS = 50;
const ANSWER_MS_MAX = 2_000;

/** Resolves when the server leads no stream and can be stopped. */
export function stepDown(config: Values<typeof opsStepDownSettings>, print: PrintLine): Promise<void> {
  return withOperator(config, async (nats) => {
    const manager = await jetstreamManager(nats);
    const until = performance.now() + config.waitMsMax;
    const streams = await streamsThatGoOn(manager, config.server, until);
    for (const {
      config: { name },
    } of streams.filter(({ cluster }) => cluster?.leader === config.server)) {
      const begun = performance.now();
      const leader = await nextLeader(nats, manager, name, config.server, until);
      print(`${name} has the new leader ${leader} after ${Math.round(performance.now() - begun)} ms`);
    }
    print(`${config.server} leads no stream and can be stopped`);
  });
}

/** Returns the streams with a replica on the server, once each has a majority of replicas elsewhere. */
async function streamsThatGoOn(manager: JetStreamManager, server: string, until: number): Promise<StreamInfo[]> {
  for (;;) {
    const streams = await streamsOn(manager, server);
    if (streams.length === 0)
      throw new SettingError(`no stream has a replica on "${server}". Set --server to the server_name of a nats-server in this cluster`);
    const stuck = streams.flatMap((info) => whyStuckWithout(server, info) ?? []);
    if (stuck.length === 0) return streams;
    if (performance.now() > until)
      throw new SettingError(
        `without ${server} some streams could not be written: ${stuck.join("; ")}. Repair the other nats-servers first, or use three replicas (COROOM_LOG_REPLICAS)`,
      );
    await sleep(POLL_MS);
  }
}

async function streamsOn(manager: JetStreamManager, server: string): Promise<StreamInfo[]> {
  return retryUntilSettled(async () => {
    const found: StreamInfo[] = [];
    for await (const info of manager.streams.list()) if (serversOf(info).includes(server)) found.push(info);
    return found;
  });
}

function serversOf({ cluster }: StreamInfo): string[] {
  return [...(cluster?.leader === undefined ? [] : [cluster.leader]), ...(cluster?.replicas ?? []).map(({ name }) => name)];
}

function whyStuckWithout(server: string, { config: { name, num_replicas: copies }, cluster }: StreamInfo): string | undefined {
  if (copies === 1) return `${name} has its only replica there`;
  const others = (cluster?.replicas ?? []).filter((replica) => replica.name !== server);
  const well =
    others.filter(({ current, offline }) => current && offline !== true).length +
    (cluster?.leader === undefined || cluster.leader === server ? 0 : 1);
  if (well > copies / 2) return undefined;
  const behind = others.filter(({ current, offline }) => !current || offline === true).map((replica) => replica.name);
  return `${name} has no majority of replicas elsewhere (${behind.length > 0 ? `${behind.join(", ")} behind or offline` : "it has no leader"})`;
}

/**
 * Repeats the request until another server leads. During an election no server answers, and the old leader may win
 * again.
 */
async function nextLeader(nats: NatsConnection, manager: JetStreamManager, stream: string, before: string, until: number): Promise<string> {
  for (let leader: string | undefined = before; ;) {
    if (leader === before)
      await unlessLate(nats.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, undefined, { timeout: ANSWER_MS_MAX }));
    const asked = performance.now();
    do {
      await sleep(POLL_MS);
      leader = (await unlessLate(manager.streams.info(stream)))?.cluster?.leader;
      if (leader !== undefined && leader !== before) return leader;
    } while (performance.now() < asked + ANSWER_MS_MAX);
    if (performance.now() > until)
      throw new SettingError(`${stream} did not get a new leader (leader: ${leader ?? "none"}). Check the health of the nats-servers`);
  }
}

/** Undefined: no answer in time, or the answer that the stream has no leader. */
async function unlessLate<Answer>(asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (isUnsettled(error)) return undefined;
    throw error;
  }
}
