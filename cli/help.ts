/** The help text, from the same declarations that parse the settings. */

import { envName, flagName, type Settings } from "../shared/config.ts";
import { adminSettings } from "./admin-settings.ts";
import { placementCommands } from "./ops-placement.ts";
import { opsLeftOutSettings, opsRoomSettings, opsStepDownSettings, opsWatchSettings, restoreSettings } from "./ops-settings.ts";
import { startSettings } from "./settings.ts";
import { tokenSettings } from "./token-settings.ts";

export function helpText(): string {
  return [
    "coroom: the real-time layer of a collaborative editor",
    "",
    "  coroom start             runs Coroom: all of it on this machine, or the roles you name",
    "  coroom token             prints a token that the local system accepts",
    "  coroom restore           brings rooms back after NATS or snapshots were lost or rolled back",
    "  coroom ops watch         shows what happens to rooms and servers, as it happens",
    "  coroom ops room          shows how a room is: mode, participants, gateways, rates",
    "  coroom ops servers       shows the room servers, where they run and what they use",
    "  coroom ops explain       says where a room is, and why",
    "  coroom ops move          hands a room over to another room server",
    "  coroom ops drain-server  hands all rooms of a room server over",
    "  coroom ops pin           keeps a room on the servers of a pool or a host, or no longer",
    "  coroom ops left-out      lists rooms with edits that no snapshot has",
    "  coroom ops step-down     has a nats-server lead nothing, before it is stopped",
    "  coroom members           lists who is in a room",
    "  coroom kick              sends a user out of a room, or ends a connection",
    "  coroom downgrade         lets a user only read for a time",
    "  coroom ban               keeps a user or an address out for a time",
    "  coroom bans              lists who is banned or may only read",
    "  coroom unban             lifts one of these",
    "  coroom delete-room       deletes a room for good, with all that is kept of it",
    "  coroom drain             sends a gateway's clients to the others, before it is ended",
    "",
    "A setting is given as a flag or as a variable; the flag wins.",
    "",
    "coroom start",
    ...table(startSettings),
    "",
    "coroom token",
    ...table(tokenSettings),
    "",
    "coroom restore",
    ...table(restoreSettings),
    "",
    "coroom ops watch",
    ...table(opsWatchSettings),
    "",
    "coroom ops room",
    ...table(opsRoomSettings),
    "",
    "coroom ops left-out",
    ...table(opsLeftOutSettings),
    "",
    "coroom ops step-down",
    ...table(opsStepDownSettings),
    "",
    ...Object.entries(placementCommands).flatMap(([command, { settings }]) => [`coroom ${command}`, ...table(settings), ""]),
    ...Object.entries(adminSettings).flatMap(([command, settings]) => [`coroom ${command}`, ...table(settings), ""]),
  ].join("\n");
}

function table(settings: Settings): string[] {
  return Object.entries(settings).map(([name, { fallback, meaning }]) => {
    const preset = fallback === undefined ? "must be given" : `default ${show(fallback)}`;
    return `  ${flagName(name).padEnd(32)} ${envName(name).padEnd(40)} ${meaning} (${preset})`;
  });
}

function show(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(",");
  return value === "" ? "empty" : String(value);
}
