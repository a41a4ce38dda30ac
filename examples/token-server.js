/**
 * Your backend, as far as Coroom is concerned: it knows who asks, and signs what they may do.
 *
 *   sub     the user: who bans, points on a leaderboard and other people's screens know them by
 *   tenant  whose rooms they are; the same room id of another tenant is another room
 *   name    what others see
 *   rooms   room ids; a trailing * stands for the rest of a name: ["notes", "team-7-*"]
 *   rights  read, write; award and admin are for backends, never for people
 *   exp     soon: the SDK asks for the next token in time, and the connection goes on
 */

import { SignJWT } from "jose";
import { createServer } from "node:http";

const secret = new TextEncoder().encode(process.env.COROOM_JWT_SECRET ?? "");
if (secret.length < 32) throw new Error("set COROOM_JWT_SECRET to the secret that Coroom was started with, 32 characters at the least");

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(`http://localhost${request.url}`);
  if (pathname !== "/token") return response.writeHead(404).end();
  const user = searchParams.get("user") ?? "guest"; // In earnest: out of the session that your login made.
  const token = await new SignJWT({ tenant: "default", name: user, rooms: ["notes"], rights: ["read", "write"] })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(user)
    .setIssuedAt()
    .setExpirationTime("10m")
    .sign(secret);
  response.writeHead(200, { "content-type": "text/plain", "cache-control": "no-store" }).end(token);
});

server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () =>
  console.log(`tokens at http://127.0.0.1:${server.address().port}/token`),
);
