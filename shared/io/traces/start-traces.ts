/** Starts traces of edits if a setting names a collector. Otherwise no tracing module is loaded. */

import type { Registry } from "prom-client";

import type { Log } from "../../process/log.ts";
import type { Running } from "../../process/lifecycle.ts";
import type { SharedConfig } from "../../settings/common-settings.ts";
import type { EditTraces } from "./edit-traces.ts";

type Traces = Running & { readonly edits: EditTraces };

/** `instance`: this run of the role. Undefined: nothing is traced. */
export async function startTraces(
  { tracesUrl, tracesShare, environment }: Pick<SharedConfig, "tracesUrl" | "tracesShare" | "environment">,
  { role, instance }: { role: string; instance: string },
  { log, registry }: { log: Log; registry: Registry },
): Promise<Traces | undefined> {
  if (tracesUrl === "" || tracesShare === 0) return undefined;
  const [{ EditTraces }, { SpanSender, steadyDate }, { traceMetrics }] = await Promise.all([
    import("./edit-traces.ts"),
    import("./span-sender.ts"),
    import("./trace-metrics.ts"),
  ]);
  const resource = {
    "service.namespace": "coroom",
    "service.name": `coroom-${role}`,
    "service.instance.id": instance,
    "deployment.environment.name": environment,
  };
  const metrics = traceMetrics(registry);
  const sender = new SpanSender({ url: tracesUrl, resource }, { log, metrics });
  const edits = new EditTraces({ environment, share: tracesShare }, { send: (span) => sender.send(span), now: steadyDate(), metrics });
  log.info({ share: tracesShare }, "edits are traced");
  return { edits, stop: () => sender.stop() };
}
