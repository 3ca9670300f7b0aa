/** The floor: five awaited async functions, and nothing around them. */

const step = async (x) => x + 1;

export function setup() {
  return {
    async run() {
      let x = 0;
      for (let i = 0; i < 5; i++) x = await step(x);
      if (x !== 5) throw new Error(`expected 5, not ${x}`);
    },
  };
}
