/** `coroom mcp`: serves the Model Context Protocol over stdin and stdout, until the client closes stdin. */

import { once } from "node:events";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { version } from "../../shared/io/version.ts";
import type { Values } from "../../shared/settings/settings.ts";
import type { mcpSettings } from "../command-settings.ts";
import { DocumentsClient } from "../documents-client.ts";
import { gatewayFor } from "../local-addresses.ts";
import { localToken } from "../token.ts";
import { mcpServer } from "./tools.ts";

const TOKEN_SECONDS = 600;

/** Without a token, the command signs its own, for all rooms of the tenant. */
export async function runMcp(settings: Values<typeof mcpSettings>): Promise<void> {
  const own = { ...settings, room: ["*"], rights: ["read" as const, "write" as const, "admin" as const], ttl: TOKEN_SECONDS };
  const documents = new DocumentsClient(gatewayFor(settings), async () => settings.token || localToken(own));
  const serving = serveStdio(() => mcpServer(documents, version()));
  await Promise.race([once(process.stdin, "end"), once(process.stdin, "close")]); // A file, such as /dev/null, ends without a close.
  await serving.close();
}
