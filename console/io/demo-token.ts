/** Asks the server that served this page for a token. Only a local system answers: elsewhere an application's own backend does this. */

export type Asked = { readonly room: string; readonly user: string; readonly name: string; readonly rights: "read" | undefined };

export async function demoToken({ room, user, name, rights }: Asked): Promise<string> {
  const search = new URLSearchParams({ room, user, name, ...(rights === undefined ? {} : { rights }) });
  const answer = await fetch(`/demo/token?${search}`, { cache: "no-store" });
  if (!answer.ok)
    throw new Error(
      `the server gave no token (${answer.status}): it hands them out only where COROOM_DEMO is on and COROOM_PRODUCTION is off`,
    );
  const body: unknown = await answer.json();
  if (typeof body !== "object" || body === null || !("token" in body) || typeof body.token !== "string")
    throw new Error("the server's answer holds no token");
  return body.token;
}
