/** What the console can have done, in words: before, so that whoever confirms knows what will happen, and after. */

import type { Ban, Gateway, Member, RoomName, Server } from "./answers.ts";
import { counted, shortName } from "./format.ts";

/** `path`, `body`: what is asked of the gateway. */
export type Plan = {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly path: string;
  readonly body: object;
  readonly done: (answer: Readonly<Record<string, unknown>>) => string;
};

const HELD_BACK_SECONDS = 3_600;

export function move({ tenant, room }: RoomName, { server }: Server): Plan {
  return {
    title: `Move ${room}?`,
    text: `It goes to ${server}. Its edits wait for a moment, nobody is disconnected and nothing is lost. Placement may move it again when it plans; to keep it there, pin it (coroom ops pin).`,
    yes: "Move it",
    path: "/move",
    body: { tenant, room, to: server },
    done: ({ from, to }) =>
      from === to
        ? `It was on ${shortName(String(to))} already.`
        : `It has moved from ${shortName(String(from))} to ${shortName(String(to))}.`,
  };
}

export function drainServer({ server, rooms }: Server, others: number): Plan {
  const go = `${counted(rooms, "room")} ${rooms === 1 ? "goes" : "go"}`;
  const whatHappens =
    others === 0
      ? "There is no other server that takes rooms: they stay where they are."
      : `Its ${go} to the ${counted(others, "other server", "other servers")}, and it takes no more.`;
  return {
    title: `Drain ${shortName(server)}?`,
    text: `${whatHappens} It runs on, and only a restart has it take rooms again.`,
    yes: "Drain it",
    path: "/drain-server",
    body: { server },
    done: () => `${shortName(server)} hands its rooms over. It can be stopped once it has none.`,
  };
}

export function drainGateway({ gateway, connections }: Gateway, others: number): Plan {
  const warning = others === 0 ? "There is no other ready gateway to go to: its clients will be closed, and come back to nothing. " : "";
  return {
    title: `Drain ${shortName(gateway)}?`,
    text: `${warning}It lets nobody new in, and sends its ${counted(connections, "client")} to other gateways within COROOM_DRAIN_MS_MAX. Only a restart undoes it.`,
    yes: "Drain it",
    path: "/drain-gateway",
    body: { server: gateway },
    done: (answer) => `${shortName(gateway)} is draining: ${counted(Number(answer["connections"]), "connection")} to go.`,
  };
}

export function kick({ tenant, room }: RoomName, { user, name, connection }: Member): Plan {
  return {
    title: `Send ${name || user} out?`,
    text: `This connection of ${user} leaves ${room}. It may come back: hold it to reading, or ban the user, if it should not.`,
    yes: "Send out",
    path: "/kick",
    body: { tenant, room, connection },
    done: ({ kicked }) => (kicked === 0 ? "It had gone already." : "It is out."),
  };
}

export function holdBack({ tenant, room }: RoomName, { user, name }: Member): Plan {
  return {
    title: `Let ${name || user} only read?`,
    text: `For an hour ${user} may be in ${room} and not write there, on whatever connection. It is listed under “Banned or held back”, and can be lifted there.`,
    yes: "Only read",
    path: "/downgrade",
    body: { tenant, room, user, seconds: HELD_BACK_SECONDS, reason: "by an administrator" },
    done: () => `${user} may only read in ${room} for an hour.`,
  };
}

export function lift({ kind, tenant, user, address, room, level }: Ban): Plan {
  const who = user ?? address ?? "";
  return {
    title: `Lift it for ${who}?`,
    text:
      level === "banned"
        ? `${who} may come in again${room === undefined ? "" : ` to ${room}`} at once.`
        : `${who} may write again${room === undefined ? "" : ` in ${room}`} at once.`,
    yes: "Lift it",
    path: "/lift",
    body: {
      ...(tenant === undefined ? {} : { tenant }),
      ...(kind === "user" ? { user } : { address }),
      ...(room === undefined ? {} : { room }),
      level,
    },
    done: () => "It is lifted.",
  };
}
