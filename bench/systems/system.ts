/** What is measured: server processes over a nats-server of their own, all of which speak Coroom's protocol to clients. */

import type { Running } from "../../shared/lifecycle.ts";
import type { ServerProcess } from "../cpu.ts";

export interface MeasuredSystem extends Running {
  readonly name: string;
  readonly gateways: readonly string[];
  readonly processes: readonly ServerProcess[];
  token(user: string): Promise<string>;
}

export const SYSTEM_NAMES = ["coroom", "relay"] as const;
export type SystemName = (typeof SYSTEM_NAMES)[number];

export const GATEWAYS = 2;
