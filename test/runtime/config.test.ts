import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../../runtime/config.ts';
import { readInput } from '../../runtime/input-file.ts';
import { parseWebhookConfig } from '../../webhook/config.ts';
import { tempDirectories } from '../support/files.ts';

describe('settings of the daemons', () => {
  it('come from flags, with defaults, into a frozen object', () => {
    const config = parseWebhookConfig(['--port', '9443', '--full-pcpus-only', 'false']);
    assert.equal(config.port, 9443);
    assert.equal(config.fullPcpusOnly, false);
    assert.equal(config.probePort, 8081);
    assert.ok(Object.isFrozen(config));
  });

  it('come from the environment if the flag is absent', () => {
    process.env['PLUMBLINE_PORT'] = '1234';
    try {
      assert.equal(parseWebhookConfig([]).port, 1234);
      assert.equal(parseWebhookConfig(['--port', '99']).port, 99);
    } finally {
      delete process.env['PLUMBLINE_PORT'];
    }
  });

  const wrong: { name: string; argv: string[]; message: RegExp }[] = [
    { name: 'a port out of range', argv: ['--port', '70000'], message: /--port 70000: / },
    { name: 'a port that is not a number', argv: ['--port', 'http'], message: /--port http: / },
    {
      name: 'an unknown flag',
      argv: ['--prot', '1'],
      message: /unknown option '--prot'.*see plumbline-webhook --help/s,
    },
    { name: 'a flag without its value', argv: ['--port'], message: /argument missing/ },
    { name: 'an extra argument', argv: ['serve'], message: /too many arguments/ },
    { name: 'an invalid boolean', argv: ['--full-pcpus-only', 'maybe'], message: /expected true or false/ },
    { name: 'an unknown log level', argv: ['--log-level', 'loud'], message: /--log-level loud: / },
  ];
  for (const { name, argv, message } of wrong) {
    it(`refuse ${name} with one line that names it`, () => {
      assert.throws(
        () => parseWebhookConfig(argv),
        (error: unknown) =>
          error instanceof ConfigError && message.test(error.message) && !error.message.includes('\n'),
      );
    });
  }
});

describe('files that a user names', () => {
  const temp = tempDirectories();
  let path: string;
  before(() => {
    path = join(temp(), 'file');
  });

  it('are read whole up to the limit', () => {
    for (const size of [0, 1, 65_535, 65_536, 65_537, 200_000]) {
      writeFileSync(path, 'x'.repeat(size));
      assert.equal(readInput(path, size).toString(), 'x'.repeat(size));
      if (size > 0) assert.throws(() => readInput(path, size - 1), { message: `it is larger than ${size - 1} bytes` });
    }
  });

  it('take memory of the order of their size, from a pipe that returns one byte at a time', async () => {
    spawnSync('mkfifo', [`${path}.pipe`]);
    const bytes = 20_000;
    const script = `const { openSync, writeSync } = require('node:fs'); const to = openSync(process.argv[1], 'w');
      for (let i = 0; i < ${bytes}; i++) { writeSync(to, 'x'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, i % 50 === 0 ? 1 : 0); }`;
    const writer = spawn(process.execPath, ['-e', script, `${path}.pipe`], { stdio: 'ignore' });
    const before = process.memoryUsage().arrayBuffers;
    const read = readInput(`${path}.pipe`, bytes);
    const after = process.memoryUsage().arrayBuffers;
    await new Promise((resolve) => writer.once('exit', resolve));
    assert.equal(read.length, bytes);
    assert.ok(after - before < 1024 * 1024, `${after - before} bytes`);
  });
});
