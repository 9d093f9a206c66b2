import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import * as x509 from '@peculiar/asn1-x509';

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

const ECDSA_WITH_SHA256 = new x509.AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' });
const COMMON_NAME = '2.5.4.3';

const createKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const encode = (value: object) => new Uint8Array(AsnConvert.serialize(value));

const extension = (extnID: string, value: object, critical = false) =>
  new x509.Extension({ extnID, critical, extnValue: new OctetString(encode(value)) });

const constraints = (cA: boolean, usage: x509.KeyUsageFlags) => [
  extension(x509.id_ce_basicConstraints, new x509.BasicConstraints({ cA }), true),
  extension(x509.id_ce_keyUsage, new x509.KeyUsage(usage), true),
];

function distinguishedName(utf8String: string): x509.Name {
  const value = new x509.AttributeValue({ utf8String });
  const attribute = new x509.AttributeTypeAndValue({ type: COMMON_NAME, value });
  return new x509.Name([new x509.RelativeDistinguishedName([attribute])]);
}

const generalName = (name: string) => new x509.GeneralName(isIP(name) === 0 ? { dNSName: name } : { iPAddress: name });

const publicKeyInfo = (key: KeyObject) => key.export({ type: 'spki', format: 'der' });

/** A digest that identifies a key, similar to RFC 7093 method 1; verifiers only compare it. */
const keyIdentifier = (key: KeyObject) => createHash('sha256').update(publicKeyInfo(key)).digest().subarray(0, 20);

const validityOf = ({ now = Date.now(), days = 30 }: CertificateOptions) =>
  new x509.Validity({ notBefore: new Date(now - SKEW_MS), notAfter: new Date(now + days * DAY_MS) });

/** Creates a self-signed certificate authority (RFC 5280) whose key never leaves this process. */
export function createCertificateAuthority(commonName: string, options: CertificateOptions = {}) {
  const ca = createKeys();
  const ownValidity = validityOf(options);
  const certify = (subject: string, key: KeyObject, extensions: x509.Extension[], validity: x509.Validity): string => {
    const tbsCertificate = new x509.TBSCertificate({
      version: x509.Version.v3,
      // Positive and never zero, as RFC 5280 requires.
      serialNumber: Uint8Array.of(1, ...randomBytes(15)).buffer,
      signature: ECDSA_WITH_SHA256,
      issuer: distinguishedName(commonName),
      validity,
      subject: distinguishedName(subject),
      subjectPublicKeyInfo: AsnConvert.parse(publicKeyInfo(key), x509.SubjectPublicKeyInfo),
      extensions: new x509.Extensions([
        ...extensions,
        extension(x509.id_ce_subjectKeyIdentifier, new x509.SubjectKeyIdentifier(keyIdentifier(key))),
      ]),
    });
    const signatureValue = new Uint8Array(sign('sha256', encode(tbsCertificate), ca.privateKey)).buffer;
    const signed = new x509.Certificate({ tbsCertificate, signatureAlgorithm: ECDSA_WITH_SHA256, signatureValue });
    return new X509Certificate(encode(signed)).toString();
  };
  const { keyCertSign, cRLSign, digitalSignature } = x509.KeyUsageFlags;

  return {
    cert: certify(commonName, ca.publicKey, constraints(true, keyCertSign | cRLSign), ownValidity),
    /** @param names DNS names and IP addresses, first the common name @throws RangeError without one */
    issue(names: readonly string[], own?: CertificateOptions): KeyedCertificate {
      const [first] = names;
      if (first === undefined) throw new RangeError('a certificate needs at least one DNS name or IP address');
      const { publicKey, privateKey } = createKeys();
      const authority = { keyIdentifier: new x509.KeyIdentifier(keyIdentifier(ca.publicKey)) };
      const extensions = [
        ...constraints(false, digitalSignature),
        extension(x509.id_ce_extKeyUsage, new x509.ExtendedKeyUsage([x509.id_kp_serverAuth, x509.id_kp_clientAuth])),
        extension(x509.id_ce_subjectAltName, new x509.SubjectAlternativeName(names.map(generalName))),
        extension(x509.id_ce_authorityKeyIdentifier, new x509.AuthorityKeyIdentifier(authority)),
      ];
      const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      return { cert: certify(first, publicKey, extensions, own ? validityOf(own) : ownValidity), key };
    },
  };
}
