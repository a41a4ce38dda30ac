/** The part of your backend that Coroom needs: it knows the user and signs a token. See `examples/token-server.js`. */

import { SignJWT } from "jose";

export async function GET(request) {
  const user = new URL(request.url).searchParams.get("user") ?? "guest"; // In production: from the session of your login.
  const secret = new TextEncoder().encode(process.env.COROOM_JWT_SECRET ?? "");
  if (secret.length < 32) throw new Error("COROOM_JWT_SECRET is missing or too short. Set it to the secret that Coroom was started with.");
  const token = await new SignJWT({ tenant: "default", name: user, rooms: ["notes", "notes-*"], rights: ["read", "write"] })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(user)
    .setIssuedAt()
    .setExpirationTime("10m")
    .sign(secret);
  return new Response(token, { headers: { "content-type": "text/plain", "cache-control": "no-store" } });
}
