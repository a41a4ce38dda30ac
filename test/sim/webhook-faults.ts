/** Faults of the endpoints that receive webhooks. A run has webhooks if one of these faults is drawn for it. */

import { never } from "./process-faults.ts";
import { ENDPOINTS, type EndpointState } from "./sim-webhooks.ts";
import type { Strike } from "./strike.ts";

export function setEndpoint(state: EndpointState): Strike {
  return (cluster, { whom, forMs }) => {
    const { webhooks } = cluster.world;
    if (webhooks === undefined) return never;
    const { name } = ENDPOINTS[Math.floor(whom * ENDPOINTS.length)]!;
    const before = webhooks.spoiltEver;
    webhooks.setState(name, state);
    let met = false;
    cluster.later(forMs, () => {
      met = webhooks.spoiltEver > before;
      if (webhooks.stateOf(name) === state) webhooks.setState(name, "well"); // Another fault may have begun.
    });
    return () => met;
  };
}
