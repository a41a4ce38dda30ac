/**
 * A system under measurement: server processes over their own nats-server. All of them speak Coroom's protocol to
 * clients.
 */

import type { Running } from "../../shared/process/lifecycle.ts";
import type { ServerProcess } from "../server-usage.ts";

export interface MeasuredSystem extends Running {
  readonly name: string;
  readonly gateways: readonly string[];
  readonly processes: readonly ServerProcess[];
  token(user: string): Promise<string>;
}

export const SYSTEM_NAMES = ["coroom", "relay"] as const;
export type SystemName = (typeof SYSTEM_NAMES)[number];

export const GATEWAYS = 2;
