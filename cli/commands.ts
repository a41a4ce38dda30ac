/**
 * Every command. Dispatch, help and errors go by this table. What a command does is loaded when it runs: a process that
 * runs one role carries no other's code, nor that of the other commands.
 */

import type { Settings, Values } from "../shared/config.ts";
import { type AdminCommand, adminSettings, opsGatewaysSettings, opsRoomsSettings } from "./admin-settings.ts";
import { command, type Command, type Say } from "./command.ts";
import {
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
} from "./ops-settings.ts";
import { runUntilSignalled } from "./run-until-signalled.ts";
import { startGroups, startSettings } from "./settings.ts";
import { tokenSettings } from "./token-settings.ts";

const ops = () => import("./ops.ts");
const placement = () => import("./ops-placement.ts");
const fleet = () => import("./ops-fleet.ts");
const askAs = (name: AdminCommand) => async (config: Values<Settings>, say: Say) =>
  say(await (await import("./admin.ts")).runAdmin(name, config));

export const commands: readonly Command[] = [
  command({
    name: "start",
    summary: "runs Coroom: all of it on this machine, or the roles you name",
    settings: startSettings,
    groups: startGroups,
    examples: ["coroom start", "coroom start --roles gateway --host 0.0.0.0"],
    run: (config) => runUntilSignalled(async () => (await import("./start.ts")).start(config)),
  }),
  command({
    name: "token",
    summary: "prints a token that the local system accepts",
    settings: tokenSettings,
    examples: ["coroom token --room notes --user ada --name Ada --ttl 1h"],
    run: async (config, say) => say(await (await import("./token.ts")).localToken(config)),
  }),
  command({
    name: "restore",
    summary: "brings rooms back after NATS or snapshots were lost or rolled back",
    settings: restoreSettings,
    examples: ["coroom restore --nats-url nats://nats-1:4222 --environment production"],
    run: async (config, say) => (await import("./restore.ts")).restore(config, say),
  }),
  command({
    name: "ops watch",
    summary: "shows what happens to rooms and servers, as it happens",
    settings: opsWatchSettings,
    examples: ["coroom ops watch --last 50"],
    run: (config, say) => runUntilSignalled(async () => (await ops()).watchEvents(config, say)),
  }),
  command({
    name: "ops room",
    summary: "shows how a room is: mode, participants, gateways, rates",
    settings: opsRoomSettings,
    examples: ["coroom ops room --room notes"],
    run: async (config, say) => (await ops()).describeRoom(config, say),
  }),
  command({
    name: "ops rooms",
    summary: "lists the open rooms: participants, edits, mode, server",
    settings: opsRoomsSettings,
    examples: ["coroom ops rooms", "coroom ops rooms --tenant acme --search notes --limit 20"],
    run: async (config, say) => (await fleet()).listRooms(config, say),
  }),
  command({
    name: "ops gateways",
    summary: "shows the gateways, their connections and what they leave out",
    settings: opsGatewaysSettings,
    examples: ["coroom ops gateways"],
    run: async (config, say) => (await fleet()).listGateways(config, say),
  }),
  command({
    name: "ops servers",
    summary: "shows the room servers, where they run and what they use",
    settings: opsServersSettings,
    examples: ["coroom ops servers"],
    run: async (config, say) => (await placement()).showServers(config, say),
  }),
  command({
    name: "ops explain",
    summary: "says where a room is, and why",
    settings: opsExplainSettings,
    examples: ["coroom ops explain --room notes"],
    run: async (config, say) => (await placement()).explainRoom(config, say),
  }),
  command({
    name: "ops move",
    summary: "hands a room over to another room server",
    settings: opsMoveSettings,
    examples: ["coroom ops move --room notes --to rs-2f6c"],
    run: async (config, say) => (await placement()).moveRoom(config, say),
  }),
  command({
    name: "ops drain-server",
    summary: "hands all rooms of a room server over",
    settings: opsDrainSettings,
    examples: ["coroom ops drain-server --server rs-2f6c"],
    run: async (config, say) => (await placement()).drainServer(config, say),
  }),
  command({
    name: "ops pin",
    summary: "keeps a room on the servers of a pool or a host, or no longer",
    settings: opsPinSettings,
    examples: ["coroom ops pin --room notes --pool gold", "coroom ops pin --room notes --on-host north", "coroom ops pin --room notes"],
    run: async (config, say) => (await placement()).pinRoom(config, say),
  }),
  command({
    name: "ops pass",
    summary: "prints a pass that makes its bearer an operator for some hours",
    settings: opsPassSettings,
    examples: ["coroom ops pass", "coroom ops pass --ttl 1h"],
    run: async (config, say) => say((await import("./ops-pass.ts")).operatorPass(config)),
  }),
  command({
    name: "ops left-out",
    summary: "lists rooms with edits that no snapshot has",
    settings: opsLeftOutSettings,
    examples: ["coroom ops left-out"],
    run: async (config, say) => (await import("./ops-left-out.ts")).listLeftOut(config, say),
  }),
  command({
    name: "ops step-down",
    summary: "has a nats-server lead nothing, before it is stopped",
    settings: opsStepDownSettings,
    examples: ["coroom ops step-down --server nats-1"],
    run: async (config, say) => (await import("./ops-step-down.ts")).stepDown(config, say),
  }),
  command({
    name: "members",
    summary: "lists who is in a room",
    settings: adminSettings.members,
    examples: ["coroom members --room notes"],
    run: askAs("members"),
  }),
  command({
    name: "kick",
    summary: "sends a user out of a room, or ends a connection",
    settings: adminSettings.kick,
    examples: ["coroom kick --user bob --room notes"],
    run: askAs("kick"),
  }),
  command({
    name: "downgrade",
    summary: "lets a user only read for a time",
    settings: adminSettings.downgrade,
    examples: ["coroom downgrade --user bob --for 1h"],
    run: askAs("downgrade"),
  }),
  command({
    name: "ban",
    summary: "keeps a user or an address out for a time",
    settings: adminSettings.ban,
    examples: ["coroom ban --user bob --for 1h --reason spam", "coroom ban --address 203.0.113.7 --for 7d"],
    run: askAs("ban"),
  }),
  command({
    name: "bans",
    summary: "lists who is banned or may only read",
    settings: adminSettings.bans,
    examples: ["coroom bans"],
    run: askAs("bans"),
  }),
  command({
    name: "unban",
    summary: "lifts a ban or a downgrade",
    settings: adminSettings.unban,
    examples: ["coroom unban --user bob", "coroom unban --user bob --level read-only"],
    run: askAs("unban"),
  }),
  command({
    name: "delete-room",
    summary: "deletes a room for good, with all that is kept of it",
    settings: adminSettings["delete-room"],
    examples: ["coroom delete-room --room notes"],
    run: askAs("delete-room"),
  }),
  command({
    name: "drain",
    summary: "sends a gateway's clients to the others, before it is ended",
    settings: adminSettings.drain,
    examples: ["coroom drain --url http://gateway-3:8080"],
    run: askAs("drain"),
  }),
];
