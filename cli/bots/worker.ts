/** The bots on a thread of their own, so that they take no time from the servers' event loop. */

import { parentPort } from "node:worker_threads";

import { Crowd, type CrowdOrder } from "./crowd.ts";

const crowd = new Crowd();
parentPort?.on("message", (order: CrowdOrder) => crowd.receive(order));
