/** Metrics of the roles y-websocket and hocuspocus. */

import { Counter, Gauge, type Registry } from "prom-client";

export type YWebsocketMetrics = ReturnType<typeof yWebsocketMetrics>;

/** `unreadBytes`: measured when the metrics are read. */
export const yWebsocketMetrics = (registry: Registry, unreadBytes = () => 0) => {
  const registers = [registry];
  return {
    clients: new Gauge({
      name: "coroom_y_clients",
      help: "Clients of the bridge: y-websocket clients, Hocuspocus sockets and their documents. Disconnected clients count until their edits are saved",
      registers,
    }),
    turnedAway: new Counter({
      name: "coroom_y_turned_away_total",
      help: "Rejected connections, by reason: full, address, origin, stopping",
      labelNames: ["reason"],
      registers,
    }),
    updates: new Counter({ name: "coroom_y_updates_total", help: "Updates received from clients", registers }),
    closes: new Counter({
      name: "coroom_y_closes_total",
      help: "Connections closed by the bridge, and documents refused on a connection that stays open, by code: 4400 unreadable, 4401 refused, 4501 token expired, 4508 no first message, 4529 too fast, 1009 message too large, 1013 overloaded, banned or slow reader",
      labelNames: ["code"],
      registers,
    }),
    answersLater: new Counter({
      name: "coroom_y_answers_later_total",
      help: "Answers delayed because the client exceeded its byte rate",
      registers,
    }),
    relaysDropped: new Counter({
      name: "coroom_y_relays_dropped_total",
      help: "Stateless messages of Hocuspocus clients that were not relayed, because the client may not write, or it or its room sends too fast",
      registers,
    }),
    unfinishedBytes: new Gauge({
      name: "coroom_y_unfinished_bytes",
      help: "Bytes of messages whose end has not arrived, of all connections of the bridge",
      registers,
    }),
    unfinishedBytesMax: new Gauge({
      name: "coroom_y_unfinished_bytes_max",
      help: "Maximum of coroom_y_unfinished_bytes, from the settings",
      registers,
    }),
    unreadBytes: new Gauge({
      name: "coroom_y_unread_bytes",
      help: "Bytes sent to clients of the bridge that they have not read yet",
      registers,
      collect() {
        this.set(unreadBytes());
      },
    }),
    unreadBytesMax: new Gauge({
      name: "coroom_y_unread_bytes_max",
      help: "Maximum of coroom_y_unread_bytes, from the settings",
      registers,
    }),
    leftOut: new Counter({
      name: "coroom_y_edits_left_out_total",
      help: "Edits not sent to clients of the bridge, because they are not Yjs updates or exceed a limit",
      registers,
    }),
    rooms: new Gauge({ name: "coroom_y_rooms", help: "Rooms that clients use now", registers }),
    problems: new Counter({
      name: "coroom_y_problems_total",
      help: "SDK errors that the protocols cannot report to the client, by kind",
      labelNames: ["kind"],
      registers,
    }),
  };
};
