import { expect, test } from "vitest";

import { readSettings, SettingError } from "../shared/settings/settings.ts";
import { gatewaySettings, refuseUnsafeGateway, refuseUnsendable } from "./config.ts";

const read = (flags: Record<string, string> = {}) => readSettings(gatewaySettings, { flags, env: {} });
const NATS_DEFAULT_MAX_PAYLOAD = 1024 * 1024;
const jwtSecret = "0123456789abcdef0123456789abcdef";

test("[GCF1] an edit size limit above the max_payload of NATS is refused at the start, because one such edit would end the gateway", () => {
  expect(() => refuseUnsendable(read(), NATS_DEFAULT_MAX_PAYLOAD)).not.toThrow();
  expect(() => refuseUnsendable(read({ editBytesMax: String(NATS_DEFAULT_MAX_PAYLOAD) }), NATS_DEFAULT_MAX_PAYLOAD)).toThrow(
    /max_payload.*COROOM_EDIT_BYTES_MAX/,
  );
});

test("[GCF7] a max_payload of NATS below one batch of small edits is refused", () => {
  const small = { editBytesMax: "1000", presenceMemberBytesMax: "100", presenceFieldsMax: "4" };
  expect(() => refuseUnsendable(read(small), 131_072)).toThrow(/batch of edits.*max_payload to 263168/);
  expect(() => refuseUnsendable(read(small), 263_168)).not.toThrow();
});

test("[GCF5] a presence size limit, field names included, above the max_payload of NATS is refused", () => {
  expect(() => refuseUnsendable(read({ presenceMemberBytesMax: String(NATS_DEFAULT_MAX_PAYLOAD) }), NATS_DEFAULT_MAX_PAYLOAD)).toThrow(
    /max_payload.*COROOM_PRESENCE_MEMBER_BYTES_MAX/,
  );
  expect(() => refuseUnsendable(read({ presenceFieldsMax: "4000" }), NATS_DEFAULT_MAX_PAYLOAD)).toThrow(
    /max_payload.*COROOM_PRESENCE_FIELDS_MAX/,
  );
  expect(() => refuseUnsendable(read({ presenceMemberBytesMax: "900000" }), NATS_DEFAULT_MAX_PAYLOAD)).not.toThrow();
  expect(() => refuseUnsendable(read({ presenceMemberBytesMax: "9000000" }), undefined)).not.toThrow();
});

test("[GCF2] production is refused while anything is unsafe, and the error lists everything that is missing", () => {
  expect(() => refuseUnsafeGateway(read({ jwtSecret }))).not.toThrow();
  expect(() => refuseUnsafeGateway(read({ jwtSecret, production: "true" }))).toThrow(/COROOM_ALLOWED_ORIGINS[^]*COROOM_INTERNAL_SECRET/);
  expect(() => refuseUnsafeGateway(read({ jwtSecret, production: "true", allowedOrigins: "https://a", internalSecret: "short" }))).toThrow(
    "at least 32",
  );
  expect(() =>
    refuseUnsafeGateway(read({ jwtSecret, production: "true", allowedOrigins: "https://a", internalSecret: jwtSecret })),
  ).not.toThrow();
});

test("[GCF11] production with public keys is refused without the tokens' issuer and audience", () => {
  const safe = { production: "true", allowedOrigins: "https://a", internalSecret: "i".repeat(32), jwksUrl: "https://id.example/jwks" };
  expect(() => refuseUnsafeGateway(read(safe))).toThrow(/COROOM_JWT_ISSUER and COROOM_JWT_AUDIENCE/);
  expect(() => refuseUnsafeGateway(read({ ...safe, jwtIssuer: "https://id.example" }))).toThrow(/COROOM_JWT_AUDIENCE/);
  expect(() => refuseUnsafeGateway(read({ ...safe, jwtIssuer: "https://id.example", jwtAudience: "coroom" }))).not.toThrow();
  expect(() => refuseUnsafeGateway(read({ ...safe, production: "false" }))).not.toThrow();
});

test("[GCF13] a previous secret is long, and accepted only beside the current one", () => {
  const previous = "p".repeat(32);
  expect(() => refuseUnsafeGateway(read({ jwtSecret, jwtSecretPrevious: previous }))).not.toThrow();
  expect(() => refuseUnsafeGateway(read({ jwtSecret, jwtSecretPrevious: "short" }))).toThrow(/COROOM_JWT_SECRET_PREVIOUS is too short/);
  expect(() => refuseUnsafeGateway(read({ jwksUrl: "https://id.example/jwks", jwtSecretPrevious: previous }))).toThrow(
    /COROOM_JWT_SECRET_PREVIOUS is accepted only beside/,
  );
});

test("[GCF6] the balancer's header may be configured in any case: requests have lower-case names", () => {
  expect(read({ clientAddressHeader: "X-Forwarded-For" }).clientAddressHeader).toBe("x-forwarded-for");
});

test.each(["nope", "ftp://id.example/keys", "https://ada:HUSH@id.example/keys"])(
  "[GCF8] %s is not accepted as an address of keys, and no password in it is printed",
  (jwksUrl) => {
    expect(() => read({ jwksUrl })).toThrow(SettingError);
    expect(() => read({ jwksUrl })).toThrow(/--jwks-url must be an address such as https:/);
    expect(() => read({ jwksUrl })).not.toThrow(/HUSH/);
    expect(read({ jwksUrl: "https://id.example/keys" }).jwksUrl).toBe("https://id.example/keys");
  },
);

test("[GCF9] limits that an honest client would always exceed are refused, each with the required change", () => {
  expect(() => refuseUnsafeGateway(read({ jwtSecret, bodiesBytesMax: "524287" }))).toThrow(
    /COROOM_BODIES_BYTES_MAX must be at least COROOM_EDIT_BYTES_MAX/,
  );
  expect(() => refuseUnsafeGateway(read({ jwtSecret, partialBytesMax: "1572863" }))).toThrow(
    /COROOM_PARTIAL_BYTES_MAX must be at least twice COROOM_FRAME_BYTES_MAX/,
  );
  expect(() => refuseUnsafeGateway(read({ jwtSecret, partialBytesMax: "1572864" }))).not.toThrow();
  expect(() => refuseUnsafeGateway(read({ jwtSecret, bytesBurst: "786431" }))).toThrow(
    /COROOM_BYTES_BURST must be at least COROOM_FRAME_BYTES_MAX/,
  );
  expect(() => refuseUnsafeGateway(read({ jwtSecret, bytesBurst: "786432" }))).not.toThrow();
  expect(() => refuseUnsafeGateway(read({ jwtSecret, pingIntervalMs: "4000", silenceMsMax: "7999" }))).toThrow(
    /COROOM_SILENCE_MS_MAX must be at least twice COROOM_PING_INTERVAL_MS/,
  );
  expect(() => refuseUnsafeGateway(read({ jwtSecret, pingIntervalMs: "4000", silenceMsMax: "8000" }))).not.toThrow();
});

test("[GCF10] origins are accepted as browsers write them, and other text is refused", () => {
  const { allowedOrigins } = read({
    allowedOrigins: "https://app.example/, HTTPS://Other.example:443, http://localhost:3000,capacitor://localhost",
  });
  expect(allowedOrigins).toEqual(["https://app.example", "https://other.example", "http://localhost:3000", "capacitor://localhost"]);
  for (const none of ["app.example", "*", "https://*.app.example", "https://app.example/editor", "https://ada@app.example"]) {
    expect(() => read({ allowedOrigins: none })).toThrow(/--allowed-origins=\S+ must be origins/);
  }
});

test("[GCF12] in production the operator secret and the metrics secret differ from all other secrets", () => {
  const safe = { production: "true", allowedOrigins: "https://a", internalSecret: "i".repeat(32), jwtSecret: "j".repeat(32) };
  expect(() => refuseUnsafeGateway(read({ ...safe, operatorSecret: "o".repeat(32), metricsSecret: "m" }))).not.toThrow();
  const jwtSecretPrevious = "p".repeat(32);
  for (const operatorSecret of [safe.internalSecret, safe.jwtSecret, jwtSecretPrevious, "short"])
    expect(() => refuseUnsafeGateway(read({ ...safe, jwtSecretPrevious, operatorSecret }))).toThrow(/COROOM_OPERATOR_SECRET/);
  expect(() => refuseUnsafeGateway(read({ ...safe, metricsSecret: safe.internalSecret }))).toThrow(/COROOM_METRICS_SECRET/);
});
