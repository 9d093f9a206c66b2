import type { X509Certificate } from 'node:crypto';
import { NAMESPACE, WEBHOOK } from '../../../model/names.ts';
import { certificatesOf } from '../../../runtime/certificate.ts';
import type { Facts, Read } from '../facts/facts.ts';
import type { TlsSecret } from '../facts/objects.ts';
import { type AreaReport, createNotebook, fix, inSystem, type Notebook } from './finding.ts';

const DAY = 86_400;
/** cert-manager renews long before this; so close to expiry, renewal has failed. */
const SOON = 7 * DAY;
/** The CA is renewed years before it expires, and callers have copies of it. */
const CA_SOON = 90 * DAY;

/** Whether the certificates are valid, for the right names, and issued by the CA that callers use. */
export function checkCertificates(facts: Facts): AreaReport {
  const { webhookSecret, mutating, validating, now } = facts;
  const notes = createNotebook('certificates');
  const configurations = [...(mutating.value ?? []), ...(validating.value ?? [])];
  const bundles = new Map(
    configurations
      .filter(({ metadata }) => metadata.name?.startsWith('plumbline-'))
      .flatMap(({ webhooks }) => webhooks)
      .flatMap(({ name, clientConfig: { caBundle } }) => (caBundle ? [[name, caBundle] as const] : [])),
  );
  const cert = checkSecret(notes, webhookSecret, WEBHOOK, now);
  for (const [name, bundle] of bundles) {
    const cas = decoded(bundle);
    if (cas.length === 0) {
      notes.error(
        `the CA bundle of ${name} is not a certificate`,
        'every call of the webhook fails',
        RENEW(WEBHOOK),
        CERTIFICATE,
      );
    } else if (cert && !cas.some((ca) => isIssuedBy(cert, ca))) {
      const why = 'the API server refuses the webhook’s certificate, so launchers cannot be created';
      notes.error(
        `the CA bundle of ${name} does not match the webhook’s certificate`,
        why,
        RENEW(WEBHOOK),
        CERTIFICATE,
      );
    }
  }
  return notes.report;
}

const CERTIFICATE = { cause: 'certificate' } as const;
/** Only the webhook's certificate affects other checks as well. */
const of = (service: string) => (service === WEBHOOK ? CERTIFICATE : {});

const RENEW = (name: string) =>
  fix('find out why it is not renewed, and whether cert-manager runs', inSystem('describe', 'certificate', name));

function checkSecret(
  notes: Notebook,
  read: Read<TlsSecret>,
  service: string,
  now: number,
): X509Certificate | undefined {
  if (read.missing === 'absent') {
    notes.error(
      `there is no secret ${service}-tls in ${NAMESPACE}`,
      `${service} cannot start without a certificate`,
      RENEW(service),
      of(service),
    );
    return undefined;
  }
  const secret = notes.value(read, `the certificate of ${service}`);
  if (secret === undefined) return undefined;
  const [cert] = decoded(secret.data['tls.crt']);
  if (cert === undefined) {
    notes.error(`secret ${service}-tls has no certificate`, `${service} cannot start`, RENEW(service), of(service));
    return undefined;
  }
  const left = (Date.parse(cert.validTo) - now) / 1000;
  const host = `${service}.${NAMESPACE}.svc`;
  if (left <= 0) {
    const what = `the certificate of ${service} has expired (${cert.validTo})`;
    notes.error(what, 'callers reject it', RENEW(service), of(service));
  } else if (left < SOON) {
    const what = `the certificate of ${service} expires in ${Math.round(left / 3600)} hours`;
    notes.warning(what, 'cert-manager should have renewed it long ago', RENEW(service));
  } else if (Date.parse(cert.validFrom) > now) {
    notes.error(
      `the certificate of ${service} is not valid yet (${cert.validFrom})`,
      'callers reject it',
      'correct the clocks of the nodes',
    );
  } else if (cert.checkHost(host) === undefined) {
    notes.error(`the certificate of ${service} is not for ${host}`, 'callers reject it', RENEW(service), of(service));
  } else notes.seen(`${service}: valid for ${Math.floor(left / DAY)} more days`);
  checkAuthority(notes, secret, service, now);
  return cert;
}

function checkAuthority(notes: Notebook, { data }: TlsSecret, service: string, now: number): void {
  const ends = decoded(data['ca.crt']).map(({ validTo }) => Date.parse(validTo));
  if (ends.length === 0) return;
  const left = (Math.max(...ends) - now) / 1000;
  const what = `the CA in secret ${service}-tls`;
  if (left <= 0)
    notes.error(`${what} has expired`, `callers reject the certificate of ${service}`, RENEW('plumbline-ca'));
  else if (left < CA_SOON) {
    const why = 'callers will then reject every certificate that it issued';
    notes.warning(`${what} expires in ${Math.floor(left / DAY)} days`, why, RENEW('plumbline-ca'));
  }
}

function isIssuedBy(cert: X509Certificate, ca: X509Certificate): boolean {
  return cert.fingerprint256 === ca.fingerprint256 || (cert.checkIssued(ca) && cert.verify(ca.publicKey));
}

const decoded = (base64 = '') => certificatesOf(Buffer.from(base64, 'base64').toString('latin1'));
