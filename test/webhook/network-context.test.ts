import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseConfiguredContext } from '../../model/networks/context.ts';
import { ConfigError } from '../../runtime/config.ts';
import { readNetworkContext } from '../../webhook/config.ts';
import { tempDirectories } from '../support/files.ts';

describe('the file in --network-context', () => {
  const temp = tempDirectories();

  it('is empty without the flag', async () => {
    assert.deepEqual(await readNetworkContext(undefined), parseConfiguredContext(undefined));
  });

  it('is read as YAML', async () => {
    const path = join(temp(), 'context.yaml');
    const context = { bridgeMappings: 'east:br-east' };
    await writeFile(path, JSON.stringify(context));
    assert.deepEqual(await readNetworkContext(path), parseConfiguredContext(context));
  });

  for (const [what, content] of [
    ['does not exist', undefined],
    ['is not YAML', '{'],
    ['has another form', 'bridgeMappings: 7'],
  ] as const) {
    it(`is named in the error if it ${what}`, async () => {
      const path = join(temp(), 'context.yaml');
      if (content !== undefined) await writeFile(path, content);
      await assert.rejects(readNetworkContext(path), (error) => {
        assert.ok(error instanceof ConfigError);
        return error.message.startsWith(`--network-context ${path}: `);
      });
    });
  }
});
