/**
 * The table of all commands. Dispatch, help and errors use it. The code of a command is loaded when it runs, so a
 * process with one role does not load the code of other roles or commands.
 */

import type { Settings, Values } from "../shared/settings/settings.ts";
import {
  type AdminCommandName,
  adminSettings,
  opsGatewaysSettings,
  opsRoomsSettings,
  opsDrainSettings,
  opsExplainSettings,
  opsLeftOutSettings,
  opsMoveSettings,
  opsPassSettings,
  opsPinSettings,
  opsRoomSettings,
  opsServersSettings,
  opsStepDownSettings,
  opsWatchSettings,
  restoreSettings,
  tokenSettings,
} from "./command-settings.ts";
import { command, type CliCommand, type PrintLine } from "./command.ts";
import { runUntilSignalled } from "./run-until-signalled.ts";
import { startGroups, startSettings } from "./settings.ts";
const ops = () => import("./ops.ts");
const placement = () => import("./ops-placement.ts");
const fleet = () => import("./ops-fleet.ts");
const askAs = (name: AdminCommandName) => async (config: Values<Settings>, print: PrintLine) =>
  print(await (await import("./admin.ts")).runAdmin(name, config));

export const commands: readonly CliCommand[] = [
  command({
    name: "start",
    summary: "start Coroom: the whole system on this machine, or the roles you name",
    settings: startSettings,
    groups: startGroups,
    examples: ["coroom start", "coroom start --roles gateway --host 0.0.0.0"],
    run: (config) => runUntilSignalled(async () => (await import("./start.ts")).start(config)),
  }),
  command({
    name: "dev",
    summary: "start the whole system in this folder for development, as start without options does",
    settings: startSettings,
    groups: startGroups,
    examples: ["coroom dev", "coroom dev --port 9000"],
    run: (config) => runUntilSignalled(async () => (await import("./start.ts")).start(config)),
  }),
  command({
    name: "token",
    summary: "print a token for the local system",
    settings: tokenSettings,
    subject: "room",
    examples: ["coroom token notes --user ada --name Ada --ttl 1h"],
    run: async (config, print) => print(await (await import("./token.ts")).localToken(config)),
  }),
  command({
    name: "restore",
    summary: "restore rooms after NATS or the snapshot store was lost or rolled back",
    settings: restoreSettings,
    examples: ["coroom restore --nats-url nats://nats-1:4222 --environment production"],
    run: async (config, print) => (await import("./restore.ts")).restore(config, print),
  }),
  command({
    name: "ops watch",
    summary: "follow operations events",
    settings: opsWatchSettings,
    examples: ["coroom ops watch --last 50"],
    run: (config, print) => runUntilSignalled(async () => (await ops()).watchEvents(config, print)),
  }),
  command({
    name: "ops room",
    summary: "show a room: mode, participants, gateways, rates",
    settings: opsRoomSettings,
    subject: "room",
    examples: ["coroom ops room notes"],
    run: async (config, print) => (await ops()).describeRoom(config, print),
  }),
  command({
    name: "ops rooms",
    summary: "list open rooms: participants, edits, mode, server",
    settings: opsRoomsSettings,
    examples: ["coroom ops rooms", "coroom ops rooms --tenant acme --search notes --limit 20"],
    run: async (config, print) => (await fleet()).listRooms(config, print),
  }),
  command({
    name: "ops gateways",
    summary: "list gateways: connections, shed level",
    settings: opsGatewaysSettings,
    examples: ["coroom ops gateways"],
    run: async (config, print) => (await fleet()).listGateways(config, print),
  }),
  command({
    name: "ops servers",
    summary: "list room servers: location, load",
    settings: opsServersSettings,
    examples: ["coroom ops servers"],
    run: async (config, print) => (await placement()).showServers(config, print),
  }),
  command({
    name: "ops explain",
    summary: "show the owner of a room and why it was chosen",
    settings: opsExplainSettings,
    subject: "room",
    examples: ["coroom ops explain notes"],
    run: async (config, print) => (await placement()).explainRoom(config, print),
  }),
  command({
    name: "ops move",
    summary: "move a room to another room server",
    settings: opsMoveSettings,
    subject: "room",
    examples: ["coroom ops move notes --to rs-2f6c"],
    run: async (config, print) => (await placement()).moveRoom(config, print),
  }),
  command({
    name: "ops drain-server",
    summary: "move all rooms away from a room server",
    settings: opsDrainSettings,
    subject: "server",
    examples: ["coroom ops drain-server rs-2f6c"],
    run: async (config, print) => (await placement()).drainServer(config, print),
  }),
  command({
    name: "ops pin",
    summary: "pin a room to a pool or host, or remove the pin",
    settings: opsPinSettings,
    subject: "room",
    examples: ["coroom ops pin notes --pool gold", "coroom ops pin notes --on-host north", "coroom ops pin notes"],
    run: async (config, print) => (await placement()).pinRoom(config, print),
  }),
  command({
    name: "ops pass",
    summary: "print an operator pass for the operations console",
    settings: opsPassSettings,
    examples: ["coroom ops pass", "coroom ops pass --ttl 1h"],
    run: async (config, print) => print((await import("./token.ts")).operatorPass(config)),
  }),
  command({
    name: "ops left-out",
    summary: "list rooms with edits that no snapshot contains",
    settings: opsLeftOutSettings,
    examples: ["coroom ops left-out"],
    run: async (config, print) => (await ops()).listLeftOut(config, print),
  }),
  command({
    name: "ops step-down",
    summary: "move all stream leaders away from a nats-server before it is stopped",
    settings: opsStepDownSettings,
    subject: "server",
    examples: ["coroom ops step-down nats-1"],
    run: async (config, print) => (await import("./ops-step-down.ts")).stepDown(config, print),
  }),
  command({
    name: "members",
    summary: "list the members of a room",
    settings: adminSettings.members,
    subject: "room",
    examples: ["coroom members notes"],
    run: askAs("members"),
  }),
  command({
    name: "kick",
    summary: "remove a user from a room, or close a connection",
    settings: adminSettings.kick,
    subject: "user",
    examples: ["coroom kick bob --room notes"],
    run: askAs("kick"),
  }),
  command({
    name: "downgrade",
    summary: "make a user read-only for a time",
    settings: adminSettings.downgrade,
    subject: "user",
    examples: ["coroom downgrade bob --for 1h"],
    run: askAs("downgrade"),
  }),
  command({
    name: "ban",
    summary: "ban a user or an IP address for a time",
    settings: adminSettings.ban,
    subject: "user",
    examples: ["coroom ban bob --for 1h --reason spam", "coroom ban --address 203.0.113.7 --for 7d"],
    run: askAs("ban"),
  }),
  command({
    name: "bans",
    summary: "list bans and downgrades",
    settings: adminSettings.bans,
    examples: ["coroom bans"],
    run: askAs("bans"),
  }),
  command({
    name: "unban",
    summary: "lift a ban or a downgrade",
    settings: adminSettings.unban,
    subject: "user",
    examples: ["coroom unban bob", "coroom unban bob --level read-only"],
    run: askAs("unban"),
  }),
  command({
    name: "delete-room",
    summary: "delete a room and all its stored data permanently",
    settings: adminSettings["delete-room"],
    subject: "room",
    examples: ["coroom delete-room notes"],
    run: askAs("delete-room"),
  }),
  command({
    name: "drain",
    summary: "move a gateway's clients to other gateways before it is stopped",
    settings: adminSettings.drain,
    examples: ["coroom drain --url http://gateway-3:8080"],
    run: askAs("drain"),
  }),
];
