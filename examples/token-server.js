/**
 * The part of your backend that Coroom needs: it knows the user and signs a token with the user's rights.
 *
 *   sub     the user id, which identifies the user in bans, on leaderboards and to other participants
 *   tenant  the owner of the rooms; the same room id under another tenant is another room
 *   name    the name that others see
 *   rooms   room ids; a trailing * matches the rest of a name: ["notes", "team-7-*"]
 *   rights  read, write; award and admin are for backends, never for users
 *   exp     a short life: the SDK requests the next token in time, and the connection continues
 */

import { SignJWT } from "jose";
import { createServer } from "node:http";

const secret = new TextEncoder().encode(process.env.COROOM_JWT_SECRET ?? "");
if (secret.length < 32)
  throw new Error("COROOM_JWT_SECRET is missing or too short. Set it to the secret that Coroom was started with, at least 32 characters.");

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(`http://localhost${request.url}`);
  if (pathname !== "/token") return response.writeHead(404).end();
  const user = searchParams.get("user") ?? "guest"; // In production: from the session of your login.
  const token = await new SignJWT({ tenant: "default", name: user, rooms: ["notes", "notes-*"], rights: ["read", "write"] })
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
