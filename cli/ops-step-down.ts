/**
 * Has one nats-server of a cluster lead no stream any more, so that stopping it costs appends a moment and not an
 * election. Refused where a stream could not go on without that server. It needs NATS only.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { jetstreamManager, type JetStreamManager, type StreamInfo } from "@nats-io/jetstream";

import { type Settings, SettingError, text, type Values } from "../shared/config.ts";
import { closeNats } from "../shared/io/nats.ts";
import { connectOperator, whereSettings } from "./ops.ts";

export const opsStepDownSettings = {
  server: { parse: text, meaning: "the nats-server, by its server_name" },
  ...whereSettings,
} as const satisfies Settings;

const STEP_DOWN_MS_MAX = 30_000;
const POLL_MS = 50;
const ANSWER_MS_MAX = 5_000;

/** Resolves when it leads none: it can be stopped then. */
export async function stepDown(config: Values<typeof opsStepDownSettings>, say: (line: string) => void): Promise<void> {
  const nats = await connectOperator(config);
  try {
    const manager = await jetstreamManager(nats);
    const streams = await streamsOn(manager, config.server);
    if (streams.length === 0) throw new SettingError(`no stream has a copy on "${config.server}": coroom ops step-down takes the server_name of a nats-server of this cluster`);
    refuseUnlessOthersGoOn(streams, config.server);
    const until = performance.now() + STEP_DOWN_MS_MAX;
    for (const { config: { name } } of streams.filter(({ cluster }) => cluster?.leader === config.server)) {
      const begun = performance.now();
      await nats.request(`$JS.API.STREAM.LEADER.STEPDOWN.${name}`, undefined, { timeout: ANSWER_MS_MAX });
      const leader = await nextLeader(manager, name, config.server, until);
      say(`${name} is led by ${leader}, after ${Math.round(performance.now() - begun)} ms`);
    }
    say(`${config.server} leads no stream: it can be stopped`);
  } finally {
    await closeNats(nats);
  }
}

async function streamsOn(manager: JetStreamManager, server: string): Promise<StreamInfo[]> {
  const found: StreamInfo[] = [];
  for await (const info of manager.streams.list()) if (serversOf(info).includes(server)) found.push(info);
  return found;
}

function serversOf({ cluster }: StreamInfo): string[] {
  return [...(cluster?.leader === undefined ? [] : [cluster.leader]), ...(cluster?.replicas ?? []).map(({ name }) => name)];
}

function refuseUnlessOthersGoOn(streams: readonly StreamInfo[], server: string): void {
  const stuck = streams.flatMap((info) => {
    const others = serversOf(info).filter((name) => name !== server);
    const lagging = (info.cluster?.replicas ?? []).filter(({ name, current, offline }) => name !== server && (!current || offline === true)).map(({ name }) => name);
    const majority = Math.floor(info.config.num_replicas / 2) + 1;
    if (others.length - lagging.length >= majority) return [];
    return [`${info.config.name} has ${info.config.num_replicas === 1 ? "its only copy there" : `no majority of copies elsewhere${lagging.length > 0 ? ` (${lagging.join(", ")} behind or away)` : ""}`}`];
  });
  if (stuck.length > 0) throw new SettingError(`without ${server} nothing could be written to some streams: ${stuck.join("; ")}. Wait for the others to catch up, or give the streams three copies (COROOM_LOG_REPLICAS)`);
}

async function nextLeader(manager: JetStreamManager, stream: string, before: string, until: number): Promise<string> {
  for (;;) {
    const { cluster } = await manager.streams.info(stream);
    if (cluster?.leader !== undefined && cluster.leader !== before) return cluster.leader;
    if (performance.now() > until) throw new SettingError(`${stream} is still led by ${before}: look at the health of the other nats-servers`);
    await sleep(POLL_MS);
  }
}
