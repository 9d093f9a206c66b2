import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { equivalents, reasonOf } from './equivalents.ts';
import { placedMutants } from './mutants.ts';

describe('the list of equivalent changes', () => {
  for (const { file, code, was, operator, nth } of equivalents) {
    it(`${file}: ${code}: ${operator}: exists`, () => {
      assert.ok(existsSync(join(root, file)), 'there is no such file');
      const mutants = placedMutants(file, readFileSync(join(root, file), 'utf8'));
      const one = mutants.find(
        (it) => it.code === code && it.was === was && it.operator === operator && it.nth === nth,
      );
      assert.ok(one, 'the source is another by now: take it off the list');
      assert.ok(reasonOf(one));
    });
  }
});
