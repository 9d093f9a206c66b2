import type { X509Certificate } from 'node:crypto';
import { NAMESPACE, WEBHOOK } from '../../../model/names.ts';
import { certificatesOf } from '../../../runtime/certificate.ts';
import type { Read } from '../../support/lists.ts';
import type { TlsSecret } from '../../support/objects.ts';
import type { DoctorFacts } from '../facts/facts.ts';
import { type AreaRecorder, areaCheck, fix, inSystem } from './finding.ts';

const SECONDS_PER_DAY = 86_400;
/** cert-manager renews long before this; so close to expiry, renewal has failed. */
const SOON = 7 * SECONDS_PER_DAY;
/** The CA is renewed years before it expires, and callers have copies of it. */
const CA_SOON = 90 * SECONDS_PER_DAY;

/** Within which a kubelet writes a renewed Secret into a pod, and the webhook reads it. */
const RELOAD_MILLISECONDS = 5 * 60_000;

const decoded = (base64 = '') => certificatesOf(Buffer.from(base64, 'base64').toString('latin1'));

const renew = (name: string) =>
  fix('find out why it is not renewed, and whether cert-manager runs', inSystem('describe', 'certificate', name));

export const RENEW = renew(WEBHOOK);

const CERTIFICATE = { cause: 'certificate' } as const;

export const checkCertificates = areaCheck('certificates', (recorder, facts: DoctorFacts) => {
  const { webhookSecret, mutating, validating, now } = facts;
  const configurations = [...(mutating.value ?? []), ...(validating.value ?? [])];
  const bundles = new Map(
    configurations
      .filter(({ metadata }) => metadata.name?.startsWith('plumbline-'))
      .flatMap(({ webhooks }) => webhooks)
      .flatMap(({ name, clientConfig: { caBundle } }) => (caBundle ? [[name, caBundle] as const] : [])),
  );
  const cert = checkSecret(recorder, webhookSecret, now);
  checkPresented(recorder, facts, cert);
  for (const [name, bundle] of bundles) {
    const cas = decoded(bundle);
    if (cas.length === 0) {
      const what = `the CA bundle of ${name} is not a certificate`;
      recorder.error(what, 'every call of the webhook fails', RENEW, CERTIFICATE);
    } else if (cert && !cas.some((ca) => isIssuedBy(cert, ca))) {
      const what = `the CA bundle of ${name} does not match the webhook’s certificate`;
      const why = 'the API server refuses the webhook’s certificate, so launchers cannot be created';
      recorder.error(what, why, RENEW, CERTIFICATE);
    }
  }
});

/** A replica presents what it has loaded, which need not be what the Secret has. */
function checkPresented(
  recorder: AreaRecorder,
  { presented, now }: DoctorFacts,
  inSecret: X509Certificate | undefined,
): void {
  for (const { pod, certificate } of recorder.value(presented, `certificates that replicas of ${WEBHOOK} present`) ??
    []) {
    if (certificate.fingerprint256 === inSecret?.fingerprint256) continue;
    const { validFrom, validTo } = certificate;
    const what = `pod ${pod} presents a certificate that`;
    const rejected = 'callers reject it, so launchers cannot be created through this replica';
    const reload = fix(
      `replace the replica if it does not load the certificate of the secret ${WEBHOOK}-tls within two minutes`,
      inSystem('logs', pod, '--tail=20'),
      inSystem('delete', 'pod', pod),
    );
    if (Date.parse(validTo) <= now) recorder.error(`${what} has expired (${validTo})`, rejected, reload, CERTIFICATE);
    else if (Date.parse(validFrom) > now) {
      recorder.error(`${what} is not valid yet (${validFrom})`, rejected, reload, CERTIFICATE);
    } else if (inSecret !== undefined && now - Date.parse(inSecret.validFrom) > RELOAD_MILLISECONDS) {
      const old = 'callers will reject it when it expires, or when its CA is no longer in the CA bundle';
      recorder.warning(`${what} is not the one in the secret ${WEBHOOK}-tls`, old, reload);
    }
  }
}

const RENEW_CA = renew('plumbline-ca');

function checkSecret(recorder: AreaRecorder, read: Read<TlsSecret>, now: number): X509Certificate | undefined {
  if (read.missing === 'absent') {
    const impact = `${WEBHOOK} cannot start without a certificate`;
    recorder.error(`there is no secret ${WEBHOOK}-tls in ${NAMESPACE}`, impact, RENEW, CERTIFICATE);
    return undefined;
  }
  const what = `the certificate of ${WEBHOOK}`;
  const secret = recorder.value(read, what);
  if (secret === undefined) return undefined;
  const [cert] = decoded(secret.data['tls.crt']);
  if (cert === undefined) {
    recorder.error(`secret ${WEBHOOK}-tls has no certificate`, `${WEBHOOK} cannot start`, RENEW, CERTIFICATE);
    return undefined;
  }
  const left = (Date.parse(cert.validTo) - now) / 1000;
  const host = `${WEBHOOK}.${NAMESPACE}.svc`;
  const rejected = 'callers reject it';
  if (left <= 0) recorder.error(`${what} has expired (${cert.validTo})`, rejected, RENEW, CERTIFICATE);
  else if (left < SOON) {
    const hours = Math.round(left / 3600);
    recorder.warning(`${what} expires in ${hours} hours`, 'cert-manager should have renewed it long ago', RENEW);
  } else if (Date.parse(cert.validFrom) > now) {
    recorder.error(`${what} is not valid yet (${cert.validFrom})`, rejected, 'correct the clocks of the nodes');
  } else if (cert.checkHost(host) === undefined) {
    recorder.error(`${what} is not for ${host}`, rejected, RENEW, CERTIFICATE);
  } else recorder.checked(`${WEBHOOK}: valid for ${Math.floor(left / SECONDS_PER_DAY)} more days`);
  checkAuthority(recorder, secret, now);
  return cert;
}

function checkAuthority(recorder: AreaRecorder, { data }: TlsSecret, now: number): void {
  const ends = decoded(data['ca.crt']).map(({ validTo }) => Date.parse(validTo));
  if (ends.length === 0) return;
  const left = (Math.max(...ends) - now) / 1000;
  const what = `the CA in secret ${WEBHOOK}-tls`;
  if (left <= 0) recorder.error(`${what} has expired`, `callers reject the certificate of ${WEBHOOK}`, RENEW_CA);
  else if (left < CA_SOON) {
    const why = 'callers will then reject every certificate that it issued';
    recorder.warning(`${what} expires in ${Math.floor(left / SECONDS_PER_DAY)} days`, why, RENEW_CA);
  }
}

function isIssuedBy(cert: X509Certificate, ca: X509Certificate): boolean {
  return cert.fingerprint256 === ca.fingerprint256 || (cert.checkIssued(ca) && cert.verify(ca.publicKey));
}
