"""The texts of the Markdown report in other languages; the templates hold the English ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from schemas.errors import InputError

ZH: Final = {
    "Test report": "测试报告",
    "Summary": "总结",
    "Passed.": "通过。",
    "Failed.": "未通过。",
    "Incomplete.": "未完成。",
    "Passed on {impl}: {good} of {total}.": "在 {impl} 上 {total} 个用例通过 {good} 个。",
    "{n} failed:": "{n} 个失败：",
    "what is wrong": "错误现象",
    "in common": "共同特征",
    "smallest case": "最小用例",
    "Nothing failed.": "没有失败的用例。",
    "Nothing was validated.": "没有任何用例得到验证。",
    "Operators without a judged valid case: {ops}.": "没有任何合法用例得到判定的算子：{ops}。",
    "Only shard {part}, without the cases of the other shards.": "仅为分片 {part}，不含其他分片的用例。",
    "The run did not finish; cases not run: {n}.": "测试未跑完，{n} 个用例未运行。",
    "The results don't match the summary of the run.": "结果与运行摘要不一致。",
    "{n} waived.": "{n} 个豁免。",
    "{n} mistrusted.": "{n} 个存疑（通过但不能证明正确）。",
    "Passed beyond the error bound: {n}.": "通过但超出误差界的用例：{n} 个。",
    "Repeated cases: {same} identical, {within} varying within the error bound, {beyond} beyond it.": (
        "多次运行的用例：{same} 个逐位一致，{within} 个变化在误差界内，{beyond} 个超出误差界。"
    ),
    "Varying between repeats without an error bound: {n}.": "多次运行结果不一致且没有误差界：{n} 个。",
    "Not returned, so unverified: {names}.": "未返回，因此未验证：{names}。",
    "Unexpected answers beyond the design: {n}.": "设计未要求的状态上有 {n} 个意外返回。",
    "{n} skipped.": "{n} 个跳过。",
    "Results": "结果",
    "operator": "算子",
    "suite": "测试集",
    "cases": "用例数",
    "status": "结果",
    "passed": "通过",
    "beyond the design": "超出设计要求",
    "Accuracy standard": "精度验收标准",
    "category": "算子类别",
    "output": "输出",
    "criterion": "误差指标",
    "threshold": "阈值",
    "source of the threshold": "阈值来源",
    "worst value": "最大误差",
    "Checklist": "自测检查项",
    "item": "检查项",
    "contract": "算子约束",
    "tested": "实测",
    "hardware": "硬件",
    "layouts": "数据排布",
    "multi-dimension": "多维张量",
    "zero elements": "零元素",
    "dtypes": "数据类型",
    "size limits": "规模限制",
    "Feature tests": "功能测试",
    "kind": "测试点",
    "sizes": "规模与对齐",
    "stability": "多次运行稳定性",
    "platforms": "多平台",
    "nan / inf": "nan / inf",
    "leaks": "内存越界检查",
    "network scale": "网络规模",
    "boundary": "边界",
    "a size of 0": "某一维度为 0",
    "inputs with NaN or Inf": "输入含 NaN 或 Inf",
    "innermost size a multiple of 64": "最内维为 64 的倍数",
    "innermost size with a remainder": "最内维有余数",
    "bit-identical when repeated": "重复运行结果逐位一致",
    "varying by rounding at most when repeated": "重复运行结果只有舍入差异",
    "nothing written outside the outputs": "没有写到输出之外",
    "Parameter checks": "参数检查",
    "rule": "检查规则",
    "expected": "期望返回",
    "got": "实际返回",
    "Performance": "性能测试",
    "hardware time (µs)": "硬件时间 (µs)",
    "interface time (µs)": "接口时间 (µs)",
    "io efficiency": "IO 效率",
    "compute efficiency": "计算效率",
    "workspace (bytes)": "workspace (字节)",
    "dtype": "数据类型",
    "shape": "规模",
    "95 % interval": "95 % 置信区间",
    "remark": "备注",
    "Rows that are only in the CSV file: {n}.": "其余 {n} 行见 CSV。",
    "Cases that are only in the report: {n}.": "其余 {n} 个见报告。",
    "beyond the error bound": "超出误差界",
    "varying between repeats": "多次运行结果不一致",
    "starting programs": "启动了其他程序",
    "Efficiencies are fractions of these peaks: {peaks}.": "效率相对于以下峰值：{peaks}。",
    "none": "无",
    "not measured": "未测",
    "case": "用例",
    "reason": "原因",
    "unknown": "未知",
}
LANGUAGES: Final[dict[str, dict[str, str]]] = {"en": {}, "zh": ZH}


def translator(lang: str) -> Callable[..., str]:
    """A function that translates an English text and fills in its {names}; InputError for an unknown language."""
    if lang not in LANGUAGES:
        raise InputError(f"unknown language {lang!r}, expected one of {', '.join(LANGUAGES)}")
    words = LANGUAGES[lang]

    def translate(text: str, **values: Any) -> str:
        return words.get(text, text).format(**values) if values else words.get(text, text)

    return translate
