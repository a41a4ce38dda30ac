/** Metrics of the y-websocket role. */

import { Counter, Gauge, type Registry } from "prom-client";

export type YWebsocketMetrics = ReturnType<typeof yWebsocketMetrics>;

export const yWebsocketMetrics = (registry: Registry) => {
  const registers = [registry];
  return {
    clients: new Gauge({
      name: "coroom_y_clients",
      help: "Connected y-websocket clients, and disconnected ones whose edits are still being saved",
      registers,
    }),
    turnedAway: new Counter({
      name: "coroom_y_turned_away_total",
      help: "Rejected connections, by reason: full, address, origin, request, stopping",
      labelNames: ["reason"],
      registers,
    }),
    updates: new Counter({ name: "coroom_y_updates_total", help: "Updates received from clients", registers }),
    closes: new Counter({
      name: "coroom_y_closes_total",
      help: "Connections closed by the bridge, by code: 4400 unreadable, 4401 refused, 4501 token expired, 4508 no first message, 4529 too fast, 1009 message too large, 1013 overloaded or slow reader",
      labelNames: ["code"],
      registers,
    }),
    answersLater: new Counter({
      name: "coroom_y_answers_later_total",
      help: "Answers delayed because the client exceeded its byte rate",
      registers,
    }),
    problems: new Counter({
      name: "coroom_y_problems_total",
      help: "SDK errors that the y-websocket protocol cannot report to the client, by kind",
      labelNames: ["kind"],
      registers,
    }),
  };
};
