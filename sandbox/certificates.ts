import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import * as x509 from '@peculiar/asn1-x509';

export interface KeyedCertificate {
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
const VERSION_3 = 2;
const ECDSA_WITH_SHA256 = new x509.AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' });
const COMMON_NAME = '2.5.4.3';

/** A copy: a buffer of Node.js may be a part of a larger one. */
const bytesOf = (buffer: Buffer): ArrayBuffer => new Uint8Array(buffer).buffer;

/** Creates a self-signed certificate authority whose key never leaves this process. */
export function createCertificateAuthority(commonName: string, options: CertificateOptions = {}) {
  const ca = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ownValidity = validityOf(options);
  const certify = (subject: string, key: KeyObject, extensions: x509.Extension[], validity: x509.Validity): string => {
    const subjectKeyId = new x509.SubjectKeyIdentifier(keyIdentifier(key));
    const toBeSigned = new x509.TBSCertificate({
      version: VERSION_3,
      serialNumber: serialNumber(),
      signature: ECDSA_WITH_SHA256,
      issuer: distinguishedName(commonName),
      validity,
      subject: distinguishedName(subject),
      subjectPublicKeyInfo: AsnConvert.parse(publicKeyInfo(key), x509.SubjectPublicKeyInfo),
      extensions: new x509.Extensions([...extensions, extension(x509.id_ce_subjectKeyIdentifier, subjectKeyId)]),
    });
    const certificate = new x509.Certificate({
      tbsCertificate: toBeSigned,
      signatureAlgorithm: ECDSA_WITH_SHA256,
      signatureValue: bytesOf(sign('sha256', Buffer.from(AsnConvert.serialize(toBeSigned)), ca.privateKey)),
    });
    return new X509Certificate(Buffer.from(AsnConvert.serialize(certificate))).toString();
  };

  return {
    cert: certify(
      commonName,
      ca.publicKey,
      [
        extension(x509.id_ce_basicConstraints, new x509.BasicConstraints({ cA: true }), true),
        extension(
          x509.id_ce_keyUsage,
          new x509.KeyUsage(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign),
          true,
        ),
      ],
      ownValidity,
    ),
    /**
     * EC P-256, for servers and clients. @param names DNS names and IP addresses; the first is the common name @throws
     * RangeError without one
     */
    issue(names: readonly string[], options?: CertificateOptions): KeyedCertificate {
      const [first] = names;
      if (first === undefined) throw new RangeError('a certificate needs at least one DNS name or IP address');
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const keyIdentifierOfCa = new x509.KeyIdentifier(keyIdentifier(ca.publicKey));
      const extensions = [
        extension(x509.id_ce_basicConstraints, new x509.BasicConstraints(), true),
        extension(x509.id_ce_keyUsage, new x509.KeyUsage(x509.KeyUsageFlags.digitalSignature), true),
        extension(x509.id_ce_extKeyUsage, new x509.ExtendedKeyUsage([x509.id_kp_serverAuth, x509.id_kp_clientAuth])),
        extension(x509.id_ce_subjectAltName, new x509.SubjectAlternativeName(names.map(generalName))),
        extension(
          x509.id_ce_authorityKeyIdentifier,
          new x509.AuthorityKeyIdentifier({ keyIdentifier: keyIdentifierOfCa }),
        ),
      ];
      const validity = options === undefined ? ownValidity : validityOf(options);
      const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      return { cert: certify(first, publicKey, extensions, validity), key };
    },
  };
}

function validityOf({ now = Date.now(), days = 30 }: CertificateOptions): x509.Validity {
  return new x509.Validity({ notBefore: new Date(now - SKEW_MS), notAfter: new Date(now + days * DAY_MS) });
}

function extension(extnID: string, value: unknown, critical = false): x509.Extension {
  return new x509.Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function distinguishedName(commonName: string): x509.Name {
  const value = new x509.AttributeValue({ utf8String: commonName });
  return new x509.Name([
    new x509.RelativeDistinguishedName([new x509.AttributeTypeAndValue({ type: COMMON_NAME, value })]),
  ]);
}

function generalName(name: string): x509.GeneralName {
  return new x509.GeneralName(isIP(name) === 0 ? { dNSName: name } : { iPAddress: name });
}

function publicKeyInfo(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' });
}

/** A digest that identifies a key, similar to RFC 7093 method 1; verifiers only compare it. */
function keyIdentifier(key: KeyObject): ArrayBuffer {
  return bytesOf(createHash('sha256').update(publicKeyInfo(key)).digest().subarray(0, 20));
}

/** Positive and never zero, as RFC 5280 requires. */
function serialNumber(): ArrayBuffer {
  const serial = randomBytes(16);
  serial[0] = (serial[0]! & 0x7f) | 0x40;
  return bytesOf(serial);
}
