import assert from 'node:assert/strict';
import { unwatchFile, watchFile } from 'node:fs';
import { request as tlsRequest } from 'node:https';
import { dirname, join } from 'node:path';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { hasAllowedName, parseNames, ServingCertificate } from '../../runtime/certificate.ts';
import { HttpServer } from '../../runtime/http-server.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories, writeTree } from '../support/files.ts';
import { silent } from '../support/logger.ts';

describe('client names', () => {
  const authority = createCertificateAuthority('test');
  const clients = createCertificateAuthority('clients');
  const temp = tempDirectories();
  let folder: string;
  let server: HttpServer | undefined;
  before(() => {
    folder = temp();
    const { cert, key } = authority.issue(['127.0.0.1']);
    writeTree(folder, { 'tls.crt': cert, 'tls.key': key, 'ca.crt': clients.cert });
  });
  afterEach(() => server?.stop(0));

  const ask = async (allowed: string, client?: { cert: string; key: string }) => {
    const [certFile, keyFile, clientCaFile] = ['tls.crt', 'tls.key', 'ca.crt'].map((file) => join(folder, file));
    server = new HttpServer({
      handler: (_request, response) => response.end('ok'),
      host: '127.0.0.1',
      port: 0,
      certificate: { certFile: certFile!, keyFile: keyFile!, clientCaFile, clientNames: parseNames(allowed) },
      log: silent,
    });
    await server.start();
    const { port } = server;
    return new Promise<number | undefined>((resolve, reject) => {
      const to = { host: '127.0.0.1', port, ca: authority.cert, agent: false as const, ...client };
      tlsRequest(to, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
    });
  };

  it('an allowed name is served', async () => {
    assert.equal(await ask('someone, kube-apiserver', clients.issue(['kube-apiserver'])), 200);
  });
  it('any other name of the same CA is refused before a request', async () => {
    await assert.rejects(ask('kube-apiserver', clients.issue(['system:node:worker-1'])));
  });
  it('a client without a certificate is refused', async () => {
    await assert.rejects(ask('kube-apiserver'));
  });
  it('without configured names, any certificate of the CA is accepted', async () => {
    assert.equal(await ask('', clients.issue(['anybody'])), 200);
  });
  it('common names, DNS names and URIs count, but not texts that look like them', () => {
    const allowed = new Set(['kube-apiserver']);
    const of = (CN: string | undefined, subjectaltname?: string) =>
      hasAllowedName({ subject: { CN }, subjectaltname } as never, allowed);
    assert.equal(of('kube-apiserver'), true);
    assert.equal(of('x', 'DNS:kube-apiserver'), true);
    assert.equal(of('x', 'DNS:"a, DNS:kube-apiserver"'), false);
    assert.equal(of('x', 'IP Address:kube-apiserver'), false);
    assert.equal(of(undefined), false);
  });
});

describe('a serving certificate', () => {
  const temp = tempDirectories();
  const authority = createCertificateAuthority('test');
  let files: Record<'certFile' | 'keyFile' | 'clientCaFile', string>;
  let certificate: ServingCertificate;
  let served: string[];

  const write = () => {
    const { cert, key } = authority.issue(['127.0.0.1']);
    writeTree(dirname(files.certFile), { 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert });
    return cert;
  };
  const isServed = (cert: string) => eventually(() => served.at(-1) === cert, 'the renewed certificate is served');
  const watch = () =>
    certificate.watch(async ({ cert }) => {
      served.push(String(cert));
      await setImmediate();
    });

  beforeEach(async () => {
    const folder = temp();
    const path = (name: string) => join(folder, name);
    files = { certFile: path('tls.crt'), keyFile: path('tls.key'), clientCaFile: path('ca.crt') };
    served = [];
    write();
    certificate = new ServingCertificate(files, silent);
    await certificate.load();
  });
  afterEach(() => {
    certificate.stop();
    mock.timers.reset();
  });

  it('is read once a minute also without a change: the reading after a change may have failed', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    const second = write();
    watch();
    for (const file of Object.values(files)) unwatchFile(file);
    await isServed(second);
    const third = write();
    mock.timers.tick(60_000);
    await isServed(third);
  });

  it('is taken once when all its files change', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    watch();
    const second = write();
    // As when their next check finds them changed.
    const ignore = () => undefined;
    for (const file of Object.values(files)) {
      watchFile(file, ignore).emit('change');
      unwatchFile(file, ignore);
    }
    await isServed(second);
    const third = write();
    mock.timers.tick(60_000);
    await isServed(third);
    assert.deepEqual(served, [second, third]);
  });
});
