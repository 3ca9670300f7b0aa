/** The fewest records that a durable execution of five steps writes: one at the start, one for each step, one at the end. */

export const RECORDS = 7;

/**
 * @param put - stores a record, `(execution, position, data)`, and resolves once the record is durable
 * @returns `run(number)`
 */
export function fiveSteps(put) {
  const step = async (x) => x + 1;
  return async (number) => {
    const execution = `exec_${number}`;
    await put(execution, 0, '{"started":true}');
    let x = 0;
    for (let i = 1; i <= 5; i++) {
      x = await step(x);
      await put(execution, i, `{"x":${x}}`);
    }
    await put(execution, 6, `{"ended":true,"x":${x}}`);
    if (x !== 5) throw new Error(`expected 5, not ${x}`);
  };
}

/** @throws when the number of records, or a last record, is wrong */
export function checkRecords({ records, right }, executions) {
  if (Number(records) === executions * RECORDS && Number(right) === executions) return;
  throw new Error(`${executions} executions left ${records} records, ${right} of them a correct last record`);
}
