/** Actions of the console: the request to the gateway, the question before it and the result after it. */

import type { ListedBan, FleetGateway, ListedMember, RoomName, FleetServer } from "./answers.ts";
import { counted, shortName } from "./format.ts";

/** `path`, `body`: the request to the gateway. */
export type PlannedAction = {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly path: string;
  readonly body: object;
  readonly done: (answer: Readonly<Record<string, unknown>>) => string;
};

const READ_ONLY_SECONDS = 3_600;

export function planMove({ tenant, room }: RoomName, { server }: FleetServer): PlannedAction {
  return {
    title: `Move ${room}?`,
    text: `Room server ${server} becomes the owner. Edits wait for a moment; nobody is disconnected and nothing is lost. Placement may move the room again later. To keep it there, pin it with coroom ops pin.`,
    yes: "Move it",
    path: "/move",
    body: { tenant, room, to: server },
    done: ({ from, to }) =>
      from === to
        ? `The room was already on ${shortName(String(to))}.`
        : `The room moved from ${shortName(String(from))} to ${shortName(String(to))}.`,
  };
}

export function planServerDrain({ server, rooms }: FleetServer, others: number): PlannedAction {
  const go = `${counted(rooms, "room")} ${rooms === 1 ? "moves" : "move"}`;
  const whatHappens =
    others === 0
      ? "No other room server accepts rooms, so its rooms stay where they are."
      : `Its ${go} to the ${counted(others, "other server", "other servers")}, and it accepts no more rooms.`;
  return {
    title: `Drain ${shortName(server)}?`,
    text: `${whatHappens} The server keeps running. Only a restart makes it accept rooms again.`,
    yes: "Drain it",
    path: "/drain-server",
    body: { server },
    done: () => `${shortName(server)} is handing over its rooms. You can stop it when it has no rooms left.`,
  };
}

export function planGatewayDrain({ gateway, connections }: FleetGateway, others: number): PlannedAction {
  const warning = others === 0 ? "No other gateway is ready, so its clients will be disconnected and cannot reconnect. " : "";
  return {
    title: `Drain ${shortName(gateway)}?`,
    text: `${warning}It rejects new connections and sends its ${counted(connections, "client")} to other gateways within COROOM_DRAIN_MS_MAX. Only a restart undoes this.`,
    yes: "Drain it",
    path: "/drain-gateway",
    body: { server: gateway },
    done: (answer) => `${shortName(gateway)} is draining: ${counted(Number(answer["connections"]), "connection")} left.`,
  };
}

export function planKick({ tenant, room }: RoomName, { user, name, connection }: ListedMember): PlannedAction {
  return {
    title: `Kick ${name || user}?`,
    text: `This connection of ${user} leaves ${room}. The user may join again. To prevent that, ban the user or make the user read-only.`,
    yes: "Kick",
    path: "/kick",
    body: { tenant, room, connection },
    done: ({ kicked }) => (kicked === 0 ? "The connection had already left the room." : "The connection has left the room."),
  };
}

export function planReadOnly({ tenant, room }: RoomName, { user, name }: ListedMember): PlannedAction {
  return {
    title: `Make ${name || user} read-only?`,
    text: `For one hour, ${user} can read ${room} but cannot write in it, on any connection. The restriction is listed under “Bans and restrictions”, where you can lift it.`,
    yes: "Make read-only",
    path: "/downgrade",
    body: { tenant, room, user, seconds: READ_ONLY_SECONDS, reason: "by an administrator" },
    done: () => `${user} can only read in ${room} for one hour.`,
  };
}

export function planLift({ kind, tenant, user, address, room, level }: ListedBan): PlannedAction {
  const who = user ?? address ?? "";
  const what = level === "banned" ? "ban of" : "restriction of";
  return {
    title: `Lift the ${what} ${who}?`,
    text:
      level === "banned"
        ? `${who} can join ${room ?? "rooms"} again immediately.`
        : `${who} can write${room === undefined ? "" : ` in ${room}`} again immediately.`,
    yes: "Lift it",
    path: "/lift",
    body: {
      ...(tenant === undefined ? {} : { tenant }),
      ...(kind === "user" ? { user } : { address }),
      ...(room === undefined ? {} : { room }),
      level,
    },
    done: () => (level === "banned" ? "The ban is lifted." : "The restriction is lifted."),
  };
}
