/** Starts one placement process. */

import type { Registry } from "prom-client";

import { subjectsOf } from "../shared/bus/subjects.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { closeNats, connectNats } from "../shared/io/nats.ts";
import type { Running } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import type { SharedConfig } from "../shared/settings.ts";
import type { PlacementConfig } from "./config.ts";
import { kvRooms } from "./io/kv-rooms.ts";
import { natsQuestions } from "./io/nats-questions.ts";
import { placementMetrics } from "./metrics.ts";
import { hostPlacement } from "./placement-host.ts";

export async function startPlacement(config: SharedConfig & PlacementConfig, { log, registry }: { log: Log; registry: Registry }): Promise<Running> {
  const subjects = subjectsOf(config.environment);
  const nats = await connectNats({ servers: config.natsUrl, name: "placement" });
  const rooms = await kvRooms(nats, subjects.roomsBucket, config.logReplicas);
  hostPlacement({ rooms, questions: natsQuestions(nats, subjects, log) }, config, { clock: systemClock, log, metrics: placementMetrics(registry) });
  await nats.flush();
  return { stop: () => closeNats(nats) };
}
