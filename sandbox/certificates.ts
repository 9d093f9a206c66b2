import {
  createHash,
  generateKeyPairSync,
  type KeyObject,
  type KeyPairKeyObjectResult,
  randomBytes,
  sign,
} from 'node:crypto';
import { isIP } from 'node:net';
import { bits, boolean, explicit, implicit, integer, octets, oid, sequence, set, utcTime, utf8 } from './der.ts';

/** A certificate and its private key, both PEM. */
export interface KeyedCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateAuthority {
  /** The CA's own certificate, PEM: clients use it as `ca` or `caBundle`. */
  readonly cert: string;
  /**
   * Issues a serving certificate (EC P-256, usable for client authentication too).
   * @param names DNS names and IP addresses, at least one; the first is the common name
   * @param options default: the lifetime of the authority
   * @throws RangeError if there is no name
   */
  issue(names: readonly string[], options?: CertificateOptions): KeyedCertificate;
  /** The same authority with a certificate of a new lifetime; name and key stay the same. */
  renew(options?: CertificateOptions): CertificateAuthority;
}

export interface CertificateOptions {
  /** Validity of certificates in days. Default 30, minimum above 0. */
  readonly days?: number;
  /** The current time in ms since 1970. Certificates are valid from five minutes earlier. */
  readonly now?: number;
}

interface Subject {
  readonly commonName: string;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

const DAY_MS = 86_400_000;
const SKEW_MS = 300_000;
const ECDSA_WITH_SHA256 = sequence(oid('1.2.840.10045.4.3.2'));
const COMMON_NAME = oid('2.5.4.3');
const KEY_USAGE = '2.5.29.15';
const SUBJECT_ALT_NAME = '2.5.29.17';
const BASIC_CONSTRAINTS = '2.5.29.19';
const SUBJECT_KEY_ID = '2.5.29.14';
const AUTHORITY_KEY_ID = '2.5.29.35';
const EXTENDED_KEY_USAGE = '2.5.29.37';
const SERVER_AUTH = oid('1.3.6.1.5.5.7.3.1');
const CLIENT_AUTH = oid('1.3.6.1.5.5.7.3.2');

/** Creates a self-signed certificate authority whose key never leaves this process. */
export function createCertificateAuthority(commonName: string, options: CertificateOptions = {}): CertificateAuthority {
  return authorityOf(commonName, generateKeyPairSync('ec', { namedCurve: 'P-256' }), validityOf(options));
}

function validityOf({ now = Date.now(), days = 30 }: CertificateOptions): Buffer {
  return sequence(utcTime(new Date(now - SKEW_MS)), utcTime(new Date(now + days * DAY_MS)));
}

function authorityOf(commonName: string, ca: KeyPairKeyObjectResult, ownValidity: Buffer): CertificateAuthority {
  const issuer = distinguishedName(commonName);
  const keyId = keyIdentifier(ca.publicKey);

  const certify = (subject: Subject, validity: Buffer): string => {
    const toBeSigned = sequence(
      explicit(0, integer(Buffer.from([2]))), // version 3
      integer(serialNumber()),
      ECDSA_WITH_SHA256,
      issuer,
      validity,
      distinguishedName(subject.commonName),
      publicKeyInfo(subject.publicKey),
      explicit(3, sequence(...subject.extensions, extension(SUBJECT_KEY_ID, octets(keyIdentifier(subject.publicKey))))),
    );
    const signature = sign('sha256', toBeSigned, ca.privateKey);
    return pem('CERTIFICATE', sequence(toBeSigned, ECDSA_WITH_SHA256, bits(signature)));
  };

  return {
    cert: certify(
      {
        commonName,
        publicKey: ca.publicKey,
        extensions: [
          extension(BASIC_CONSTRAINTS, sequence(boolean(true)), true),
          extension(KEY_USAGE, bits(Buffer.from([0b0000_0110]), 1), true), // keyCertSign, cRLSign
        ],
      },
      ownValidity,
    ),
    renew: (options = {}) => authorityOf(commonName, ca, validityOf(options)),
    issue(names, options) {
      const [first] = names;
      if (first === undefined) throw new RangeError('a certificate needs at least one DNS name or IP address');
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const cert = certify(
        {
          commonName: first,
          publicKey,
          extensions: [
            extension(BASIC_CONSTRAINTS, sequence(), true),
            extension(KEY_USAGE, bits(Buffer.from([0b1000_0000]), 7), true), // digitalSignature
            extension(EXTENDED_KEY_USAGE, sequence(SERVER_AUTH, CLIENT_AUTH)),
            extension(SUBJECT_ALT_NAME, sequence(...names.map(generalName))),
            extension(AUTHORITY_KEY_ID, sequence(implicit(0, keyId))),
          ],
        },
        options === undefined ? ownValidity : validityOf(options),
      );
      return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
    },
  };
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octets(value));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(set(sequence(COMMON_NAME, utf8(commonName))));
}

function generalName(name: string): Buffer {
  return isIP(name) === 0 ? implicit(2, Buffer.from(name, 'ascii')) : implicit(7, addressBytes(name));
}

/** Four or sixteen bytes in network order. */
function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail = ''] = address.split('::');
  const words = (text: string) => (text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16)));
  const before = words(head);
  const after = words(tail);
  const all = [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Buffer.from(all.flatMap((word) => [word >>> 8, word & 0xff]));
}

function publicKeyInfo(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' });
}

/** A digest that identifies a key, similar to RFC 7093 method 1; verifiers only compare it. */
function keyIdentifier(key: KeyObject): Buffer {
  return createHash('sha256').update(publicKeyInfo(key)).digest().subarray(0, 20);
}

/** Positive and never zero, as RFC 5280 requires. */
function serialNumber(): Buffer {
  const serial = randomBytes(16);
  serial[0] = (serial[0]! & 0x7f) | 0x40;
  return serial;
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
