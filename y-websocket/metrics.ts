/** What the y-websocket role counts. */

import { Counter, Gauge, type Registry } from "prom-client";

export type YWebsocketMetrics = ReturnType<typeof yWebsocketMetrics>;

export const yWebsocketMetrics = (registry: Registry) => {
  const registers = [registry];
  return {
    clients: new Gauge({
      name: "coroom_y_clients",
      help: "Connections of y-websocket clients, and those that are gone while what they wrote is saved",
      registers,
    }),
    turnedAway: new Counter({
      name: "coroom_y_turned_away_total",
      help: "Connections not taken, by reason: full, address, origin, request, stopping",
      labelNames: ["reason"],
      registers,
    }),
    updates: new Counter({ name: "coroom_y_updates_total", help: "Updates taken from clients", registers }),
    closes: new Counter({
      name: "coroom_y_closes_total",
      help: "Connections closed from here, by code: 4400 unreadable, 4401 refused, 4501 token expired, 4508 said nothing in time, 4529 wrote too fast, 1009 too large a message, 1013 overloaded or too slow",
      labelNames: ["code"],
      registers,
    }),
    answersLater: new Counter({
      name: "coroom_y_answers_later_total",
      help: "Questions of clients that were not answered at once, having been answered with too many bytes",
      registers,
    }),
    problems: new Counter({
      name: "coroom_y_problems_total",
      help: "What clients are not told, their protocol having no word for it, by the kind of error that the SDK names",
      labelNames: ["kind"],
      registers,
    }),
  };
};
