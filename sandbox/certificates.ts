import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { isIPv4 } from 'node:net';

interface KeyedCertificate {
  readonly cert: string;
  readonly key: string;
}

export type CertificateAuthority = ReturnType<typeof createCertificateAuthority>;

interface CertificateOptions {
  /** Validity of certificates in days. Default 30, minimum above 0. */
  readonly days?: number;
  /** The current time in ms since 1970. Certificates are valid from five minutes earlier. */
  readonly now?: number;
}

const DAY_MS = 86_400_000;
const SKEW_MS = 300_000;

/** Tag, length and content of a value in DER (X.690). */
function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.of(tag, ...lengthBytes(content.length)), content]);
}

/** In the shortest form, as Go requires; for less than 64 KiB. */
function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

const sequence = (...values: readonly Uint8Array[]) => der(0x30, ...values);
const integer = (bytes: Uint8Array) => der(0x02, bytes);
const octets = (bytes: Uint8Array) => der(0x04, bytes);
const identifier = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const bits = (bytes: Uint8Array, unusedBits = 0) => der(0x03, Buffer.of(unusedBits), bytes);
const TRUE = der(0x01, Buffer.of(0xff));

const ECDSA_WITH_SHA256 = sequence(identifier('2a8648ce3d040302'));
const COMMON_NAME = identifier('550403');

/** @param id the last byte of an object identifier below 2.5.29 */
function extension(id: number, value: Uint8Array, isCritical = false): Buffer {
  return sequence(identifier(`551d${Buffer.of(id).toString('hex')}`), ...(isCritical ? [TRUE] : []), octets(value));
}

const basicConstraints = (isAuthority: boolean) => extension(19, sequence(...(isAuthority ? [TRUE] : [])), true);
const SIGNS_CERTIFICATES = extension(15, bits(Buffer.of(0b0000_0110), 1), true);
const SIGNS_HANDSHAKES = extension(15, bits(Buffer.of(0b1000_0000), 7), true);
const SERVER_AND_CLIENT = extension(37, sequence(identifier('2b06010505070301'), identifier('2b06010505070302')));

const distinguishedName = (commonName: string) =>
  sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(commonName)))));

const generalName = (name: string) =>
  isIPv4(name) ? der(0x87, Buffer.from(name.split('.').map(Number))) : der(0x82, Buffer.from(name));

const publicKeyInfo = (key: KeyObject) => key.export({ type: 'spki', format: 'der' });

/** A digest that identifies a key, similar to RFC 7093 method 1; verifiers only compare it. */
const keyIdentifier = (key: KeyObject) => createHash('sha256').update(publicKeyInfo(key)).digest().subarray(0, 20);

/** Creates a self-signed certificate authority (RFC 5280) whose key never leaves this process. */
export function createCertificateAuthority(commonName: string, options: CertificateOptions = {}) {
  const ca = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ownValidity = validityOf(options);
  const certify = (subject: string, key: KeyObject, extensions: Uint8Array[], validity: Uint8Array): string => {
    const version3 = der(0xa0, integer(Buffer.of(2)));
    const subjectKeyId = extension(14, octets(keyIdentifier(key)));
    const toBeSigned = sequence(
      version3,
      integer(serialNumber()),
      ECDSA_WITH_SHA256,
      distinguishedName(commonName),
      validity,
      distinguishedName(subject),
      publicKeyInfo(key),
      der(0xa3, sequence(...extensions, subjectKeyId)),
    );
    const signature = bits(sign('sha256', toBeSigned, ca.privateKey));
    return new X509Certificate(sequence(toBeSigned, ECDSA_WITH_SHA256, signature)).toString();
  };

  return {
    cert: certify(commonName, ca.publicKey, [basicConstraints(true), SIGNS_CERTIFICATES], ownValidity),
    /** @param names DNS names and IPv4 addresses, first the common name @throws RangeError without one */
    issue(names: readonly string[], own?: CertificateOptions): KeyedCertificate {
      const [first] = names;
      if (first === undefined) throw new RangeError('a certificate needs at least one DNS name or IP address');
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const extensions = [
        basicConstraints(false),
        SIGNS_HANDSHAKES,
        SERVER_AND_CLIENT,
        extension(17, sequence(...names.map(generalName))),
        extension(35, sequence(der(0x80, keyIdentifier(ca.publicKey)))),
      ];
      const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      return { cert: certify(first, publicKey, extensions, own ? validityOf(own) : ownValidity), key };
    },
  };
}

function validityOf({ now = Date.now(), days = 30 }: CertificateOptions): Buffer {
  const utcTime = (time: number) => {
    const digits = new Date(time).toISOString().slice(2, 19).replace(/\D/g, '');
    return der(0x17, Buffer.from(`${digits}Z`));
  };
  return sequence(utcTime(now - SKEW_MS), utcTime(now + days * DAY_MS));
}

/** Positive and never zero, as RFC 5280 requires. */
function serialNumber(): Buffer {
  const serial = randomBytes(16);
  serial[0] = (serial[0]! & 0x7f) | 0x40;
  return serial;
}
