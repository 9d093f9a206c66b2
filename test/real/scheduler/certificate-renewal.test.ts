import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type CertificateAuthority,
  createCertificateAuthority,
  type KeyedCertificate,
} from '../../../sandbox/certificates.ts';
import { type MountedSecret, mountSecret } from '../../support/mounted-secret.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { launcher } from './extender-call.ts';
import { type Replica, SERVER_NAME, type Stage, startStage } from './stage.ts';

const BODY = JSON.stringify({ Pod: launcher('a', '4'), NodeNames: ['n0'] });
const SECOND = 1 / 86_400;
/** Lifetime of a serving certificate in seconds, and the time of its renewal. */
const [LIFETIME, RENEWED_AFTER] = [6, 4];

interface Caller {
  /** The caFile at the start of the caller. */
  readonly ca: string;
  readonly certificate: KeyedCertificate;
}

/** kube-scheduler reads its files once: the CA that it trusted at its start must accept renewed certificates. */
describe('renewal of the extender’s certificates under load', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let count = 0;

  before(async () => {
    stage = await startStage();
  });
  after(() => stage?.stop());

  let replica: Replica | undefined;
  afterEach(() => replica?.stop());

  const filesOf = (authority: CertificateAuthority, lifetime = LIFETIME) => {
    const { cert, key } = authority.issue([SERVER_NAME], { days: lifetime * SECOND });
    return { 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert };
  };
  const start = async (authority: CertificateAuthority): Promise<{ replica: Replica; secret: MountedSecret }> => {
    const secret = await mountSecret(join(stage.plane.directory, `secret-${++count}`), filesOf(authority, 600));
    const files = ['--cert-file', secret.path('tls.crt'), '--key-file', secret.path('tls.key')];
    const started = await stage.startReplica({ args: [...files, '--client-ca-file', secret.path('ca.crt')] });
    replica = started;
    await until('the replica to be active', () => started.isActive());
    // From here on, its certificate is valid for seconds.
    await secret.write(filesOf(authority));
    await delay(500);
    return { replica: started, secret };
  };
  const callerOf = (authority: CertificateAuthority): Caller => ({
    ca: authority.cert,
    certificate: authority.issue(['plumbline-scheduler-client']),
  });

  const filter = (port: number, agent: Agent) =>
    new Promise<void>((resolve, reject) => {
      const headers = { 'content-length': Buffer.byteLength(BODY) };
      const to = { host: '127.0.0.1', port, path: '/filter', method: 'POST', agent, headers };
      const call = request(to, (response) => {
        response.resume().on('error', reject);
        response.on('end', () =>
          response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`)),
        );
      });
      call.on('error', reject).end(BODY);
    });

  /** Continuous calls, each over a new connection and over a kept one, while the work runs. */
  const underLoad = async (port: number, callers: readonly Caller[], work: () => Promise<void>) => {
    const failures: string[] = [];
    let calls = 0;
    let running = true;
    const loop = async ({ ca, certificate }: Caller, keepAlive: boolean) => {
      const agent = new Agent({ ca, servername: SERVER_NAME, keepAlive, maxCachedSessions: 0, ...certificate });
      while (running) {
        calls++;
        await filter(port, agent).catch((error: Error) => failures.push(error.message));
        await delay(5);
      }
      agent.destroy();
    };
    const loops = callers.flatMap((caller) => [loop(caller, false), loop(caller, true)]);
    await work();
    running = false;
    await Promise.all(loops);
    return { calls, failures };
  };
  /** Renews the leaf in time, twice, until both earlier ones have expired. */
  const renewTwice = async (secret: MountedSecret, authorities: readonly CertificateAuthority[]) => {
    for (const authority of authorities) {
      await delay(RENEWED_AFTER * 1000);
      await secret.write(filesOf(authority));
    }
    await delay(RENEWED_AFTER * 1000);
  };

  it('no call fails when two serving certificates of one authority expire', async () => {
    const authority = createCertificateAuthority('plumbline-ca');
    const { replica, secret } = await start(authority);
    const load = () => renewTwice(secret, [authority, authority]);
    const { calls, failures } = await underLoad(replica.port, [callerOf(authority)], load);
    console.log(`      ${calls} calls, ${failures.length} failed`);
    assert.deepEqual([...new Set(failures)], []);
    assert.ok(calls > 200, `only ${calls} calls`);
    const expiry = await replica.metric('plumbline_certificate_expiry_timestamp_seconds', { certificate: 'serving' });
    assert.ok(Math.abs(expiry - (Date.now() / 1000 + LIFETIME - RENEWED_AFTER)) < 3, 'the metric follows the renewal');
  });

  it('callers with the old or the new authority are served if it is renewed with its key', async () => {
    const first = createCertificateAuthority('plumbline-ca', { days: 1 });
    const { replica, secret } = await start(first);
    const second = first.renew({ days: 30 });
    assert.notEqual(new X509Certificate(second.cert).fingerprint256, new X509Certificate(first.cert).fingerprint256);
    const callers = [callerOf(first), callerOf(second)];
    const { calls, failures } = await underLoad(replica.port, callers, () => renewTwice(secret, [second, second]));
    console.log(`      ${calls} calls, ${failures.length} failed`);
    assert.deepEqual([...new Set(failures)], []);
    const ends = await replica.metric('plumbline_certificate_expiry_timestamp_seconds', { certificate: 'authority' });
    assert.equal(ends, Date.parse(new X509Certificate(second.cert).validTo) / 1000);
  });

  it('calls fail if the authority changes at each renewal, as with self-signed certificates', async () => {
    const [first, ...others] = ['a', 'b', 'c'].map((name) => createCertificateAuthority(name));
    const { replica, secret } = await start(first!);
    const { calls, failures } = await underLoad(replica.port, [callerOf(first!)], () => renewTwice(secret, others));
    console.log(`      ${calls} calls, ${failures.length} failed`);
    assert.ok(failures.length > 100, `only ${failures.length} of ${calls}`);
  });
});
