/**
 * Has one nats-server of a cluster lead no stream any more, so that stopping it costs appends a moment and not an
 * election. Refused where a stream could not go on without that server. It needs NATS only.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { jetstreamManager, type JetStreamManager, type StreamInfo } from "@nats-io/jetstream";

import { SettingError, type Values } from "../shared/config.ts";
import { isUnsettled, onceSettled } from "../shared/io/copies.ts";
import { closeNats, type NatsConnection } from "../shared/io/nats.ts";
import { connectOperator } from "./ops.ts";
import type { opsStepDownSettings } from "./ops-settings.ts";

const POLL_MS = 50;
const ANSWER_MS_MAX = 2_000;

/** Resolves when it leads none: it can be stopped then. */
export async function stepDown(config: Values<typeof opsStepDownSettings>, say: (line: string) => void): Promise<void> {
  const nats = await connectOperator(config);
  try {
    const manager = await jetstreamManager(nats);
    const until = performance.now() + config.waitMsMax;
    const streams = await streamsThatGoOn(manager, config.server, until);
    for (const {
      config: { name },
    } of streams.filter(({ cluster }) => cluster?.leader === config.server)) {
      const begun = performance.now();
      const leader = await nextLeader(nats, manager, name, config.server, until);
      say(`${name} is led by ${leader}, after ${Math.round(performance.now() - begun)} ms`);
    }
    say(`${config.server} leads no stream: it can be stopped`);
  } finally {
    await closeNats(nats);
  }
}

/** The streams with a copy on the server, once each has a majority of copies elsewhere. */
async function streamsThatGoOn(manager: JetStreamManager, server: string, until: number): Promise<StreamInfo[]> {
  for (;;) {
    const streams = await streamsOn(manager, server);
    if (streams.length === 0)
      throw new SettingError(
        `no stream has a copy on "${server}": coroom ops step-down takes the server_name of a nats-server of this cluster`,
      );
    const stuck = streams.flatMap((info) => whyStuckWithout(server, info) ?? []);
    if (stuck.length === 0) return streams;
    if (performance.now() > until)
      throw new SettingError(
        `without ${server} nothing could be written to some streams: ${stuck.join("; ")}. See to the other nats-servers first, or give the streams three copies (COROOM_LOG_REPLICAS)`,
      );
    await sleep(POLL_MS);
  }
}

async function streamsOn(manager: JetStreamManager, server: string): Promise<StreamInfo[]> {
  return onceSettled(async () => {
    const found: StreamInfo[] = [];
    for await (const info of manager.streams.list()) if (serversOf(info).includes(server)) found.push(info);
    return found;
  });
}

function serversOf({ cluster }: StreamInfo): string[] {
  return [...(cluster?.leader === undefined ? [] : [cluster.leader]), ...(cluster?.replicas ?? []).map(({ name }) => name)];
}

function whyStuckWithout(server: string, { config: { name, num_replicas: copies }, cluster }: StreamInfo): string | undefined {
  if (copies === 1) return `${name} has its only copy there`;
  const others = (cluster?.replicas ?? []).filter((replica) => replica.name !== server);
  const well =
    others.filter(({ current, offline }) => current && offline !== true).length +
    (cluster?.leader === undefined || cluster.leader === server ? 0 : 1);
  if (well > copies / 2) return undefined;
  const behind = others.filter(({ current, offline }) => !current || offline === true).map((replica) => replica.name);
  return `${name} has no majority of copies elsewhere (${behind.length > 0 ? `${behind.join(", ")} behind or away` : "it has no leader"})`;
}

/** Asks until another leads: while a stream elects nobody answers for it, and who steps down may be elected again. */
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
      throw new SettingError(`${stream} has no other leader than ${leader ?? "none"}: look at the health of the nats-servers`);
  }
}

/** Undefined: nobody answers in time, or only to say that nobody leads. */
async function unlessLate<Answer>(asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (isUnsettled(error)) return undefined;
    throw error;
  }
}
