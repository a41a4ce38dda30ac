/** What the people who run Coroom ask of it from a terminal. It needs NATS and no other role. */

import type { OperationsEvent } from "../shared/bus/operations-events.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { type Settings, type Values, wholeNumber } from "../shared/config.ts";
import { closeNats, connectNats } from "../shared/io/nats.ts";
import { ensureOperationsStream } from "../shared/io/nats-operations.ts";
import { watchOperations } from "../shared/io/watch-operations.ts";
import type { Running } from "../shared/lifecycle.ts";
import { localNatsUrl } from "./local-nats-url.ts";
import { startSettings } from "./settings.ts";

const { dataDir, environment, logReplicas, opsEventsMax, opsBytesMax, opsKeptMsMax } = startSettings;

/** Those of `coroom start` that say where the system is, and what its stream of events holds. */
const whereSettings = {
  natsUrl: { ...startSettings.natsUrl, meaning: "the NATS servers, comma-separated; empty: that of the local system" },
  dataDir,
  environment,
} as const satisfies Settings;

export const opsWatchSettings = {
  last: { parse: wholeNumber, fallback: 20, meaning: "how many of the events that were kept are shown first" },
  ...whereSettings,
  logReplicas,
  opsEventsMax,
  opsBytesMax,
  opsKeptMsMax,
} as const satisfies Settings;

/** Says a line for each event, until stopped. */
export async function watchEvents(config: Values<typeof opsWatchSettings>, say: (line: string) => void): Promise<Running> {
  const subjects = subjectsOf(config.environment);
  const nats = await connectNats({ servers: natsUrlOf(config), name: "coroom ops" });
  await ensureOperationsStream(nats, subjects, config);
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

function natsUrlOf({ natsUrl, dataDir }: { natsUrl: string; dataDir: string }): string {
  return natsUrl === "" ? localNatsUrl(dataDir) : natsUrl;
}

/** One line for a person to read. */
export function describeEvent({ at, by, kind, ...facts }: OperationsEvent): string {
  const told = Object.entries(facts).map(([name, value]) => `${name}=${typeof value === "string" && /[\s="]/.test(value) ? JSON.stringify(value) : String(value)}`);
  return [new Date(at).toISOString(), kind, ...told, `by=${by}`].join(" ");
}
